# Kafka's own wrapper translates KAFKA_* variables and formats the log directories; then the broker runs.
set -eu
export CLUSTER_ID="${CLUSTER_ID:-4L6g3nShT-eMCtK--X86sw}"
libs='/opt/kafka/libs/*' logging=-Dlog4j2.configurationFile=/opt/kafka/defaults/log4j2.yaml
output=$(java -Xmx256m "$logging" -cp "$libs" kafka.docker.KafkaDockerWrapper setup \
    --default-configs-dir /opt/kafka/defaults --mounted-configs-dir /mnt/shared/config \
    --final-configs-dir /opt/kafka/config 2>&1) \
    || case $output in *"already formatted"*) ;; *) echo "$output"; exit 1 ;; esac
exec java -Xmx512m "$logging" -cp "$libs" kafka.Kafka /opt/kafka/config/server.properties
