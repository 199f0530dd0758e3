#!/bin/bash
# pip's distribution lacks this script. It runs in the foreground.
exec /opt/spark/bin/spark-submit --class org.apache.spark.sql.connect.service.SparkConnectServer "$@" spark-internal
