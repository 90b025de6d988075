{{/* The pods of each component: dict "root" $ "name" COMPONENT "c" VALUES. */}}

{{- define "ledgerlake.podMetadata" -}}
labels:
  {{- include "ledgerlake.selectorLabels" . | nindent 2 }}
  app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
  app.kubernetes.io/part-of: ledgerlake
  {{- with merge dict .c.podLabels .root.Values.commonLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
annotations:
  # A process reads its settings once: pods are replaced when they change.
  checksum/config: {{ include "ledgerlake.configData" . | sha256sum }}
  {{- with .c.podAnnotations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{- define "ledgerlake.podSpec" -}}
{{- if eq .name "verify" }}
restartPolicy: Never
{{- else }}
terminationGracePeriodSeconds: {{ include "ledgerlake.graceSeconds" . }}
{{- end }}
serviceAccountName: {{ include "ledgerlake.serviceAccountName" . }}
# No process asks the API server. IAM's web identity has a token of its own.
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile:
    type: RuntimeDefault
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with .c.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .c.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .c.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .c.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if and .root.Values.topologySpread (ne .name "verify") }}
topologySpreadConstraints:
  {{- $selector := dict "matchLabels" (include "ledgerlake.selectorLabels" . | fromYaml) }}
  {{- $constraints := list }}
  {{- range .root.Values.topologySpread }}
  {{- $constraints = append $constraints (merge (dict "labelSelector" $selector) .) }}
  {{- end }}
  {{- toYaml $constraints | nindent 2 }}
{{- end }}
containers:
  - name: {{ .name }}
    image: {{ include "ledgerlake.image" .root | quote }}
    imagePullPolicy: {{ .root.Values.image.pullPolicy }}
    command: [{{ include "ledgerlake.command" . }}]
    args:
      {{- include "ledgerlake.args" . | trim | nindent 6 }}
    {{- with include "ledgerlake.env" . | trim }}
    env:
      {{- . | nindent 6 }}
    {{- end }}
    {{- if ne .name "verify" }}
    ports:
      - name: metrics
        containerPort: {{ include "ledgerlake.port" . }}
      {{- if eq .name "serve" }}
      - name: answers
        containerPort: 8420
      {{- end }}
    {{- include "ledgerlake.probes" . | nindent 4 }}
    {{- end }}
    resources:
      {{- include "ledgerlake.resources" . | nindent 6 }}
    securityContext:
      allowPrivilegeEscalation: false
      privileged: false
      readOnlyRootFilesystem: true
      runAsNonRoot: true
      capabilities:
        drop: [ALL]
    volumeMounts:
      # Beside the secrets and not above them: nothing can be mounted within a ConfigMap.
      - name: config
        mountPath: /etc/ledgerlake/settings
        readOnly: true
      {{- range $secret, $_ := include "ledgerlake.secretMounts" . | fromYaml }}
      - name: {{ include "ledgerlake.volumeName" $secret }}
        mountPath: /etc/ledgerlake/secrets/{{ $secret }}
        readOnly: true
      {{- end }}
      {{- if and (eq .name "verify") .c.stateClaim }}
      - name: state
        mountPath: /var/lib/ledgerlake
      {{- end }}
      {{- with .c.volumeMounts }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
volumes:
  - name: config
    configMap:
      name: {{ include "ledgerlake.componentName" . }}
  {{- range $secret, $keys := include "ledgerlake.secretMounts" . | fromYaml }}
  - name: {{ include "ledgerlake.volumeName" $secret }}
    secret:
      secretName: {{ $secret }}
      defaultMode: 288 # 0440
      {{- with $keys }}
      items:
        {{- range . }}
        - key: {{ . }}
          path: {{ . }}
        {{- end }}
      {{- end }}
  {{- end }}
  {{- if and (eq .name "verify") .c.stateClaim }}
  - name: state
    persistentVolumeClaim:
      claimName: {{ .c.stateClaim }}
  {{- end }}
  {{- with .c.volumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{/* A volume for a Secret: names of volumes are labels, those of Secrets may have dots. */}}
{{- define "ledgerlake.volumeName" -}}
{{- if and (lt (len .) 57) (not (contains "." .)) -}}
secret-{{ . }}
{{- else -}}
secret-{{ sha256sum . | trunc 16 }}
{{- end -}}
{{- end -}}

{{- define "ledgerlake.env" -}}
{{- if and (has .name (list "ingest" "compact")) (eq .c.kind "StatefulSet") }}
- name: LEDGERLAKE_KAFKA_INSTANCE_ID
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
{{- end }}
{{- range $name, $value := merge dict .c.env .root.Values.env }}
- name: {{ $name }}
  value: {{ $value | toString | quote }}
{{- end }}
{{- range $name, $from := merge dict .c.secretEnv .root.Values.secretEnv }}
- name: {{ $name }}
  valueFrom:
    secretKeyRef:
      name: {{ $from.secret }}
      key: {{ $from.key }}
{{- end }}
{{- end -}}

{{/* /healthz says that a process lives, also while the store and the brokers are away;
/readyz that it makes progress. */}}
{{- define "ledgerlake.probes" -}}
startupProbe:
  httpGet: {path: /healthz, port: metrics}
  periodSeconds: 2
  failureThreshold: 30
livenessProbe:
  httpGet: {path: /healthz, port: metrics}
  periodSeconds: 10
  timeoutSeconds: 6
  failureThreshold: 6
readinessProbe:
  httpGet: {path: /readyz, port: metrics}
  periodSeconds: 5
  timeoutSeconds: 6
  failureThreshold: 3
{{- end -}}
