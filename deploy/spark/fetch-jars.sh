#!/bin/bash
# Fetches the jars of locks into `jars`, by the Ivy that Spark ships: fetch-jars.sh DELTA_VERSION LOCK…
# A jar that is missing, or whose sum is another one, ends it with an error.
set -euo pipefail
delta=$1
shift
{
    echo '<ivy-module version="2.0"><info organisation="binwright" module="spark"/>'
    echo '<configurations><conf name="default"/></configurations><dependencies>'
} > ivy.xml
# organisation:name:revision size sha256
while IFS=': ' read -r organisation name revision _ sha256; do
    echo "<dependency org=\"$organisation\" name=\"$name\" rev=\"$revision\" transitive=\"false\" conf=\"default->default\">" \
        "<artifact name=\"$name\" type=\"jar\" ext=\"jar\"/></dependency>" >> ivy.xml
    echo "$sha256  jars/$name-$revision.jar" >> sums
done < <(sed -e '/^#/d' -e '/^$/d' -e "s/{delta-spark}/$delta/" "$@")
echo '</dependencies></ivy-module>' >> ivy.xml
java -jar "${SPARK_HOME:-/opt/spark}"/jars/ivy-*.jar -settings ivysettings.xml -ivy ivy.xml -cache cache \
    -types jar -confs default -retrieve 'jars/[artifact]-[revision].[ext]'
sha256sum --check --strict --quiet sums
chmod 644 jars/*.jar
