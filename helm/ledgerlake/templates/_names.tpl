{{/* What objects are called, and labelled. */}}

{{- define "ledgerlake.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{/* At most 40 characters: names of CronJobs may have 52. */}}
{{- define "ledgerlake.fullname" -}}
{{- $name := include "ledgerlake.name" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* The name of a component: dict "root" $ "name" COMPONENT. Alerts know the Jobs of
verify by a name with ledgerlake and verify in it. */}}
{{- define "ledgerlake.componentName" -}}
{{- $full := include "ledgerlake.fullname" .root -}}
{{- if and (eq .name "verify") (not (contains "ledgerlake" $full)) -}}
{{- printf "%s-ledgerlake-verify" ($full | trunc 33 | trimSuffix "-") -}}
{{- else -}}
{{- printf "%s-%s" $full .name -}}
{{- end -}}
{{- end -}}

{{- define "ledgerlake.selectorLabels" -}}
app.kubernetes.io/name: {{ include "ledgerlake.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .name }}
{{- end -}}

{{- define "ledgerlake.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- if .name }}
{{ include "ledgerlake.selectorLabels" . }}
{{- else }}
app.kubernetes.io/name: {{ include "ledgerlake.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- end }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
app.kubernetes.io/part-of: ledgerlake
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "ledgerlake.metadata" -}}
name: {{ include "ledgerlake.componentName" . }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- include "ledgerlake.labels" . | nindent 2 }}
{{- end -}}

{{- define "ledgerlake.serviceAccountName" -}}
{{- default (include "ledgerlake.componentName" .) .c.serviceAccount.name -}}
{{- end -}}

{{- define "ledgerlake.image" -}}
{{- $i := .Values.image -}}
{{- if $i.digest -}}
{{- printf "%s@%s" $i.repository $i.digest -}}
{{- else -}}
{{- printf "%s:%s" $i.repository (default .Chart.AppVersion $i.tag) -}}
{{- end -}}
{{- end -}}

{{/* The components that run for long, and the port of /healthz, /readyz and /metrics.
These are the ports that the commands have by default. */}}
{{- define "ledgerlake.ports" -}}
ingest: 9404
compact: 9405
stream: 9406
serve: 9407
{{- end -}}

{{- define "ledgerlake.port" -}}
{{- get (include "ledgerlake.ports" . | fromYaml) .name -}}
{{- end -}}

{{/* The enabled ones of them, as a list of names. */}}
{{- define "ledgerlake.running" -}}
{{- $values := .Values -}}
{{- range $name := list "ingest" "compact" "stream" "serve" }}
{{- if (get $values $name).enabled }}
- {{ $name }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "ledgerlake.kind" -}}
{{- default "Deployment" .c.kind -}}
{{- end -}}
