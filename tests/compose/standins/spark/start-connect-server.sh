#!/bin/bash
# What pip's distribution leaves out; always in the foreground. Delta's jars are in this image already.
[ "$1" = --packages ] && shift 2
exec /opt/spark/bin/spark-submit --class org.apache.spark.sql.connect.service.SparkConnectServer "$@" spark-internal
