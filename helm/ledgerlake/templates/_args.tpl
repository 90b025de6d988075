{{/* The command line of each component: dict "root" $ "name" COMPONENT "c" VALUES. */}}

{{- define "ledgerlake.command" -}}
{{- if has .name (list "stream" "serve") -}}
/usr/local/bin/ledgerlake-export
{{- else -}}
/usr/local/bin/ledgerlake-{{ .name }}
{{- end -}}
{{- end -}}

{{- define "ledgerlake.args" -}}
{{- if has .name (list "ingest" "compact") }}
- run
- --config=/etc/ledgerlake/settings/config.yaml
{{- else if eq .name "stream" }}
- stream
- --config=/etc/ledgerlake/settings/config.yaml
{{- else if eq .name "serve" }}
- serve
- --config=/etc/ledgerlake/settings/config.yaml
{{- include "ledgerlake.serveArgs" . }}
{{- else }}
- --config=/etc/ledgerlake/settings/config.yaml
{{- include "ledgerlake.verifyArgs" . }}
{{- end }}
{{- end -}}

{{/* The keys of keyed logs, as serve and verify are told of them. */}}
{{- define "ledgerlake.keyedArgs" -}}
{{- with get (include "ledgerlake.secretFiles" . | fromYaml) "chain.master-key-file" }}
- --master-key={{ include "ledgerlake.secretPath" . }}
{{- end }}
{{- with dig "chain" "key-dir" "" (include "ledgerlake.given" . | fromYaml) }}
- --log-key-dir={{ . }}
{{- end }}
{{- end -}}

{{- define "ledgerlake.serveArgs" }}
- --tokens={{ include "ledgerlake.secretPath" .c.tokens }}
- --listen=:8420
- --metrics=:{{ include "ledgerlake.port" . }}
{{- if .c.tls.secret }}
- --tls-cert={{ include "ledgerlake.secretPath" (dict "secret" .c.tls.secret "key" "tls.crt") }}
- --tls-key={{ include "ledgerlake.secretPath" (dict "secret" .c.tls.secret "key" "tls.key") }}
{{- else }}
- --plain-http
{{- end }}
- --memory={{ .c.memory }}
- --requests={{ int .c.requests }}
- --token-requests={{ int .c.tokenRequests }}
{{- with index (include "ledgerlake.given" . | fromYaml) "control-topic" }}
- --control-topic={{ . }}
{{- end }}
{{- range .c.keys }}
- --key={{ . }}
{{- end }}
{{- include "ledgerlake.keyedArgs" . }}
{{- range .c.args }}
- {{ . | quote }}
{{- end }}
{{- end -}}

{{- define "ledgerlake.verifyArgs" }}
- --json
- --memory={{ .c.memory }}
{{- range .c.keys }}
- --key={{ . }}
{{- end }}
{{- if .c.allowUnsigned }}
- --allow-unsigned
{{- end }}
{{- range .c.witnesses }}
- --witness={{ . }}
{{- end }}
{{- with .c.expectFrom }}
- --expect-from={{ . }}
{{- end }}
{{- if .c.stateClaim }}
- --state=/var/lib/ledgerlake/verify.state
{{- end }}
{{- include "ledgerlake.keyedArgs" . }}
{{- range .c.args }}
- {{ . | quote }}
{{- end }}
- {{ (include "ledgerlake.given" . | fromYaml).bucket | quote }}
{{- end -}}
