#!/bin/bash
# pip's distribution lacks this script. It runs in the foreground; Delta's jars are in this image already.
[ "$1" = --packages ] && shift 2
exec /opt/spark/bin/spark-submit --class org.apache.spark.sql.connect.service.SparkConnectServer "$@" spark-internal
