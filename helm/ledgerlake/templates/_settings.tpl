{{/* What a component is told: its file of settings, and the Secrets that it names.
All of these take dict "root" $ "name" COMPONENT "c" VALUES. */}}

{{/* Sets a value in a tree of dicts: dict "tree" T "path" LIST "value" V. */}}
{{- define "ledgerlake.put" -}}
{{- $name := first .path -}}
{{- if eq (len .path) 1 -}}
{{- $_ := set .tree $name .value -}}
{{- else -}}
{{- if not (hasKey .tree $name) -}}{{- $_ := set .tree $name dict -}}{{- end -}}
{{- include "ledgerlake.put" (dict "tree" (get .tree $name) "path" (rest .path) "value" .value) -}}
{{- end -}}
{{- end -}}

{{/* The settings of all commands, and over them those of the component, without what
the chart adds. */}}
{{- define "ledgerlake.given" -}}
{{- toYaml (mergeOverwrite dict (deepCopy .root.Values.settings) (deepCopy .c.settings)) -}}
{{- end -}}

{{/* "true" where a component reaches Kafka: only then it gets what it takes to do so. */}}
{{- define "ledgerlake.usesKafka" -}}
{{- if has .name (list "ingest" "compact") -}}
true
{{- else if eq .name "stream" -}}
{{- $s := include "ledgerlake.given" . | fromYaml -}}
{{- if ne (dig "stream" "audit-topic" "none" $s) "none" -}}true{{- end -}}
{{- else if eq .name "verify" -}}
{{- if hasPrefix "kafka://" .c.expectFrom -}}true{{- end -}}
{{- end -}}
{{- end -}}

{{/* The settings that lie in files of Secrets: those of all commands, as far as the
component has a use for them, and its own. */}}
{{- define "ledgerlake.secretFiles" -}}
{{- $kafka := include "ledgerlake.usesKafka" . -}}
{{- $files := dict -}}
{{- range $setting, $from := .root.Values.secretFiles -}}
{{- if or $kafka (not (hasPrefix "kafka." $setting)) -}}{{- $_ := set $files $setting $from -}}{{- end -}}
{{- end -}}
{{- range $setting, $from := .c.secretFiles -}}{{- $_ := set $files $setting $from -}}{{- end -}}
{{- toYaml $files -}}
{{- end -}}

{{- define "ledgerlake.secretPath" -}}
/etc/ledgerlake/secrets/{{ .secret }}/{{ .key }}
{{- end -}}

{{/* The settings as the file has them. */}}
{{- define "ledgerlake.settings" -}}
{{- $s := include "ledgerlake.given" . | fromYaml -}}
{{- if not $s.bucket -}}
{{- fail (printf "settings.bucket is not set: where the archive lies, s3://BUCKET/PREFIX; %s needs it" .name) -}}
{{- end -}}
{{- if eq .name "serve" -}}
{{- $s = pick $s "bucket" "s3" -}}
{{- else if eq .name "verify" -}}
{{- $s = pick $s "s3" "kafka" -}}
{{- end -}}
{{- if not (include "ledgerlake.usesKafka" .) -}}{{- $s = omit $s "kafka" "brokers" -}}{{- end -}}
{{- range $setting, $from := include "ledgerlake.secretFiles" . | fromYaml -}}
{{- if not (and (hasPrefix "chain." $setting) (has $.name (list "serve" "verify"))) -}}
{{- $value := "" -}}
{{- if kindIs "slice" $from -}}
{{- $value = list -}}
{{- range $from -}}{{- $value = append $value (include "ledgerlake.secretPath" .) -}}{{- end -}}
{{- else -}}
{{- $value = include "ledgerlake.secretPath" $from -}}
{{- end -}}
{{- include "ledgerlake.put" (dict "tree" $s "path" (splitList "." $setting) "value" $value) -}}
{{- end -}}
{{- end -}}
{{- if has .name (list "ingest" "compact" "stream") -}}
{{- include "ledgerlake.put" (dict "tree" $s "path" (list "http" "listen") "value" (printf ":%s" (include "ledgerlake.port" .))) -}}
{{- end -}}
{{- if and (eq .name "ingest") .c.scrubPolicy -}}{{- $_ := set $s "scrub-policy" "/etc/ledgerlake/settings/scrub.yaml" -}}{{- end -}}
{{- if and (eq .name "compact") .c.retention -}}{{- $_ := set $s "retention-file" "/etc/ledgerlake/settings/retention.yaml" -}}{{- end -}}
{{- if eq .name "stream" -}}{{- $_ := set $s "destinations" .c.destinations -}}{{- end -}}
{{- include "ledgerlake.checkSettings" (dict "c" .c "name" .name "s" $s) -}}
{{- toYaml $s -}}
{{- end -}}

{{/* What values.schema.json cannot say, because it lies between values. */}}
{{- define "ledgerlake.checkSettings" -}}
{{- if and (has .name (list "ingest" "compact")) (not (or .s.topics (index .s "topic-pattern") .s.assign (ne (dig "compact" "assign" "group" .s) "group"))) -}}
{{- fail (printf "settings.topics is not set: the topics that are archived, or settings.topic-pattern; %s needs one of them" .name) -}}
{{- end -}}
{{- if and (eq .name "stream") (not .c.destinations) -}}
{{- fail "stream.destinations is empty: list where rows go (docs/destination-settings.md), or set stream.enabled to false" -}}
{{- end -}}
{{- if and (eq .name "serve") (not .c.tokens.secret) -}}
{{- fail "serve.tokens is not set: {secret: NAME, key: KEY} of the file of tokens (docs/serve.md)" -}}
{{- end -}}
{{- if and (eq .name "serve") (not .c.tls.secret) (not .c.plainHTTP) -}}
{{- fail "serve.tls.secret is not set: tokens would cross the network as they are; name a Secret of type kubernetes.io/tls, or set serve.plainHTTP to true where what is in front does TLS" -}}
{{- end -}}
{{- if and (eq .name "verify") (not .c.keys) (not .c.allowUnsigned) -}}
{{- fail "verify.keys is empty: name the vkeys that you know (docs/keys.md), or set verify.allowUnsigned to true" -}}
{{- end -}}
{{- end -}}

{{/* The data of the ConfigMap. */}}
{{- define "ledgerlake.configData" -}}
config.yaml: |
  # Made by the chart from settings, {{ .name }}.settings and secretFiles.
  {{- include "ledgerlake.settings" . | nindent 2 }}
{{- if and (eq .name "ingest") .c.scrubPolicy }}
scrub.yaml: |
  {{- .c.scrubPolicy | nindent 2 }}
{{- end }}
{{- if and (eq .name "compact") .c.retention }}
retention.yaml: |
  {{- .c.retention | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Secrets that are mounted, by name: a list of keys, or null for all of them. */}}
{{- define "ledgerlake.secretMounts" -}}
{{- $mounts := dict -}}
{{- range $_, $from := include "ledgerlake.secretFiles" . | fromYaml -}}
{{- range $one := ternary $from (list $from) (kindIs "slice" $from) -}}
{{- $_ := set $mounts $one.secret (append (default list (get $mounts $one.secret)) $one.key | uniq) -}}
{{- end -}}
{{- end -}}
{{- if eq .name "serve" -}}
{{- $_ := set $mounts .c.tokens.secret (append (default list (get $mounts .c.tokens.secret)) .c.tokens.key | uniq) -}}
{{- with .c.tls.secret -}}{{- $_ := set $mounts . (list "tls.crt" "tls.key") -}}{{- end -}}
{{- end -}}
{{- range .c.secretMounts -}}{{- $_ := set $mounts . list -}}{{- end -}}
{{- toYaml $mounts -}}
{{- end -}}
