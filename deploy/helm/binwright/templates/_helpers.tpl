{{/* A value as TOML. JSON's strings, numbers, booleans and lists are TOML's, too. */}}
{{- define "binwright.tomlValue" -}}
{{- if kindIs "map" . -}}
{ {{- $entries := list -}}
{{- range $key, $value := . -}}
{{- if not (kindIs "invalid" $value) -}}
{{- $entries = append $entries (printf "%s = %s" ($key | quote) (include "binwright.tomlValue" $value)) -}}
{{- end -}}
{{- end -}}
{{- join ", " $entries -}} }
{{- else if kindIs "slice" . -}}
[ {{- $entries := list -}}
{{- range . -}}
{{- $entries = append $entries (include "binwright.tomlValue" .) -}}
{{- end -}}
{{- join ", " $entries -}} ]
{{- else -}}
{{- toJson . -}}
{{- end -}}
{{- end -}}

{{/* A settings file: values, then tables. A null is left out: so a default is unset. */}}
{{- define "binwright.toml" -}}
{{- $lines := list -}}
{{- range $key, $value := . -}}
{{- if not (or (kindIs "map" $value) (kindIs "invalid" $value)) -}}
{{- $lines = append $lines (printf "%s = %s" $key (include "binwright.tomlValue" $value)) -}}
{{- end -}}
{{- end -}}
{{- range $table, $entries := . -}}
{{- if kindIs "map" $entries -}}
{{- $lines = append $lines (printf "[%s]" $table) -}}
{{- range $key, $value := $entries -}}
{{- if not (kindIs "invalid" $value) -}}
{{- $lines = append $lines (printf "%s = %s" $key (include "binwright.tomlValue" $value)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- join "\n" $lines }}
{{ end -}}

{{/* An image of the manifests, with the release's registry and tag. */}}
{{- define "binwright.image" -}}
{{- $name := .image | splitList ":" | first -}}
{{- $images := .root.Values.images -}}
{{- if hasPrefix "binwright-" $name -}}
{{- with $images.registry -}}{{ trimSuffix "/" . }}/{{- end -}}
{{- $name -}}
{{- with get $images.digests $name -}}@{{ . }}{{- else -}}:{{ $images.tag | default $.root.Chart.AppVersion }}{{- end -}}
{{- else -}}
{{- .root.Values.spark.tls.image -}}
{{- end -}}
{{- end -}}

{{/* The name that the release has for a Secret of the manifests. */}}
{{- define "binwright.secret" -}}
{{- $secrets := .root.Values.secrets -}}
{{- $names := dict "binwright-kafka" $secrets.kafka "binwright-kafka-ca" $secrets.kafkaCa "binwright-lake" $secrets.lake "binwright-spark-token" $secrets.sparkToken "binwright-spark-tls" $secrets.sparkTls "binwright-spark-ca" $secrets.sparkCa -}}
{{- if not (hasKey $names .name) -}}{{- fail (printf "values name no Secret %s" .name) -}}{{- end -}}
{{- get $names .name -}}
{{- end -}}

{{/* Changes a pod's template {metadata, spec} of a component in place. */}}
{{- define "binwright.patchPod" -}}
{{- $root := .root -}}
{{- $component := .component -}}
{{- $spec := .template.spec -}}
{{- $own := get $root.Values $component -}}
{{- range $container := $spec.containers -}}
{{- $_ := set $container "image" (include "binwright.image" (dict "root" $root "image" $container.image)) -}}
{{- with $root.Values.images.pullPolicy -}}{{- $_ := set $container "imagePullPolicy" . -}}{{- end -}}
{{- range $container.envFrom -}}
{{- $_ := set .secretRef "name" (include "binwright.secret" (dict "root" $root "name" .secretRef.name)) -}}
{{- end -}}
{{- range $container.env -}}
{{- with (.valueFrom | default dict).secretKeyRef -}}
{{- $_ := set . "name" (include "binwright.secret" (dict "root" $root "name" .name)) -}}
{{- end -}}
{{- end -}}
{{- if eq $container.name $component -}}
{{- with $own.resources -}}{{- $_ := set $container "resources" . -}}{{- end -}}
{{- if and $root.Values.lake.claim (has $component (list "consumer" "spark")) -}}
{{- $_ := set $container "volumeMounts" (append $container.volumeMounts (dict "name" "lake" "mountPath" $root.Values.lake.path)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $spec.volumes -}}
{{- with .secret -}}
{{- $_ := set . "secretName" (include "binwright.secret" (dict "root" $root "name" .secretName)) -}}
{{- end -}}
{{- end -}}
{{- if and $root.Values.lake.claim (has $component (list "consumer" "spark")) -}}
{{- $claim := dict "name" "lake" "persistentVolumeClaim" (dict "claimName" $root.Values.lake.claim) -}}
{{- $_ := set $spec "volumes" (append $spec.volumes $claim) -}}
{{- if eq $component "consumer" -}}
{{/* Spark's group: both write to the volume and read the other's files. */}}
{{- $_ := set $spec.securityContext "fsGroup" 185 -}}
{{- $_ := set $spec.securityContext "fsGroupChangePolicy" "OnRootMismatch" -}}
{{- end -}}
{{- end -}}
{{- with $root.Values.images.pullSecrets -}}
{{- $names := list -}}
{{- range . -}}{{- $names = append $names (dict "name" .) -}}{{- end -}}
{{- $_ := set $spec "imagePullSecrets" $names -}}
{{- end -}}
{{- with $own.nodeSelector -}}{{- $_ := set $spec "nodeSelector" . -}}{{- end -}}
{{- with $own.tolerations -}}{{- $_ := set $spec "tolerations" . -}}{{- end -}}
{{- if ne $component "spark" -}}
{{/* Programs read their settings at the start: other ones start them again, consumers one by one. */}}
{{- $settings := ternary $own.settings $root.Values.settings (has $component (list "scaler" "balancer")) -}}
{{- $sum := include "binwright.toml" $settings | sha256sum -}}
{{- $meta := .template.metadata | default dict -}}
{{- $_ := set $meta "annotations" (merge (dict "binwright.dev/settings" $sum) ($meta.annotations | default dict)) -}}
{{- $_ := set .template "metadata" $meta -}}
{{- end -}}
{{- end -}}

{{/* Whether the release has an object of the manifests. */}}
{{- define "binwright.wanted" -}}
{{- $values := .root.Values -}}
{{- $object := .object -}}
{{- $ofSpark := and (hasPrefix "binwright-spark" $object.metadata.name) (not $values.spark.enabled) -}}
{{- if eq $object.kind "Namespace" -}}
{{- else if and (eq $object.kind "CustomResourceDefinition") (not $values.crds.install) -}}
{{- else if and (eq $object.kind "NetworkPolicy") (not $values.networkPolicies.enabled) -}}
{{- else if $ofSpark -}}
{{- else -}}
yes
{{- end -}}
{{- end -}}

{{/* Adds the proxy with TLS to Spark's pod, as the patch of the component does; changes the pod's spec in place. */}}
{{- define "binwright.addTls" -}}
{{- $lake := .root.Values.settings.lake | default dict -}}
{{- if or (not (contains "use_ssl=true" ($lake.spark | default ""))) $lake.allow_cleartext_token -}}
{{- fail "spark.tls.enabled: settings.lake.spark must end with /;use_ssl=true, and settings.lake.allow_cleartext_token must be null" -}}
{{- end -}}
{{- $pod := .pod -}}
{{- $patch := (.root.Files.Get "files/spark-tls/deployment.yaml" | fromYaml).spec.template.spec -}}
{{- range $container := $patch.containers -}}
{{- if eq $container.name "spark" -}}
{{- range $changed := $container.env -}}
{{- range (first $pod.containers).env -}}
{{- if eq .name $changed.name -}}{{- $_ := set . "value" $changed.value -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- else -}}
{{- $_ := set $pod "containers" (concat (list (first $pod.containers) $container) (rest $pod.containers)) -}}
{{- end -}}
{{- end -}}
{{- $_ := set $pod "volumes" (concat $patch.volumes $pod.volumes) -}}
{{- end -}}

{{/* Changes an object of the manifests in place. */}}
{{- define "binwright.patchObject" -}}
{{- $root := .root -}}
{{- $values := $root.Values -}}
{{- $object := .object -}}
{{- $meta := $object.metadata -}}
{{- $labels := dict "app.kubernetes.io/name" "binwright" "app.kubernetes.io/part-of" "binwright" -}}
{{- $_ := set $meta "labels" (merge $labels ($meta.labels | default dict)) -}}
{{- $clusterWide := list "CustomResourceDefinition" "ClusterRole" "ClusterRoleBinding" "ValidatingAdmissionPolicy" "ValidatingAdmissionPolicyBinding" -}}
{{- if not (has $object.kind $clusterWide) -}}{{- $_ := set $meta "namespace" $root.Release.Namespace -}}{{- end -}}
{{- range $object.subjects -}}{{- $_ := set . "namespace" $root.Release.Namespace -}}{{- end -}}
{{- if eq $object.kind "Deployment" -}}
{{- $component := get $meta.labels "app.kubernetes.io/component" -}}
{{- with (get $values $component).replicas -}}{{- $_ := set $object.spec "replicas" (int .) -}}{{- end -}}
{{- if and (eq $component "spark") $values.spark.tls.enabled -}}
{{- include "binwright.addTls" (dict "root" $root "pod" $object.spec.template.spec) -}}
{{- end -}}
{{- include "binwright.patchPod" (dict "root" $root "template" $object.spec.template "component" $component) -}}
{{- if eq $component "spark" -}}
{{- $spark := first $object.spec.template.spec.containers -}}
{{- $arguments := list -}}
{{- range $spark.args -}}
{{- $arguments = append $arguments (ternary (printf "spark.driver.memory=%s" $values.spark.driverMemory) . (hasPrefix "spark.driver.memory=" .)) -}}
{{- end -}}
{{- $_ := set $spark "args" $arguments -}}
{{- end -}}
{{- else if eq $object.kind "CustomResourceDefinition" -}}
{{- if $values.crds.keep -}}
{{- $_ := set $meta "annotations" (merge (dict "helm.sh/resource-policy" "keep") ($meta.annotations | default dict)) -}}
{{- end -}}
{{- else if eq $meta.name "binwright-settings" -}}
{{- $_ := set $object.data "binwright.toml" (include "binwright.toml" $values.settings) -}}
{{- else if eq $meta.name "binwright-scaler-settings" -}}
{{- $_ := set $object.data "binwright.toml" (include "binwright.toml" $values.scaler.settings) -}}
{{- else if eq $meta.name "binwright-balancer-settings" -}}
{{- $_ := set $object.data "binwright.toml" (include "binwright.toml" $values.balancer.settings) -}}
{{- else if and (eq $object.kind "ConfigMap") (eq $meta.name "binwright-consumer") -}}
{{- $template := index $object.data "pod.yaml" | fromYaml -}}
{{- include "binwright.patchPod" (dict "root" $root "template" $template "component" "consumer") -}}
{{- $_ := set $object.data "pod.yaml" (toYaml $template) -}}
{{- else if and (eq $object.kind "ValidatingAdmissionPolicy") (eq $meta.name "consumergroups.binwright.dev") -}}
{{- $settings := $values.settings.kubernetes | default dict -}}
{{- range $object.spec.variables -}}
{{- if and (eq .name "labelNames") (hasKey $settings "template_labels") -}}{{- $_ := set . "expression" (toJson $settings.template_labels) -}}{{- end -}}
{{- if and (eq .name "priorityClasses") (hasKey $settings "template_priority_classes") -}}{{- $_ := set . "expression" (toJson $settings.template_priority_classes) -}}{{- end -}}
{{- end -}}
{{- else if eq $object.kind "NetworkPolicy" -}}
{{- if has $meta.name (list "binwright-kafka" "binwright-scaler" "binwright-balancer") -}}
{{- $_ := set $object.spec "egress" (concat $object.spec.egress $values.networkPolicies.egress) -}}
{{- else if eq $meta.name "binwright-consumer" -}}
{{- $_ := set $object.spec "egress" (concat $object.spec.egress $values.networkPolicies.consumerEgress) -}}
{{- end -}}
{{- end -}}
{{- end -}}
