{{/* Memory and times that follow from settings: dict "root" $ "name" COMPONENT "c" VALUES. */}}

{{/* The bytes of a size such as 256MiB. */}}
{{- define "ledgerlake.bytes" -}}
{{- $units := dict "B" 1 "kB" 1000 "MB" 1000000 "GB" 1000000000 "TB" 1000000000000 "KiB" 1024 "MiB" 1048576 "GiB" 1073741824 "TiB" 1099511627776 -}}
{{- $unit := regexFind "[A-Za-z]+$" . -}}
{{- if not (hasKey $units $unit) -}}
{{- fail (printf "%s is no size: want a number and a unit, such as 256MiB" .) -}}
{{- end -}}
{{- mul (regexFind "^[0-9]+" .) (get $units $unit) -}}
{{- end -}}

{{/* The setting that bounds the memory of a component. */}}
{{- define "ledgerlake.memorySetting" -}}
{{- $s := include "ledgerlake.given" . | fromYaml -}}
{{- if eq .name "ingest" -}}
{{- default "256MiB" $s.memory -}}
{{- else if eq .name "compact" -}}
{{- dig "compact" "memory" "512MiB" $s -}}
{{- else if eq .name "stream" -}}
{{- dig "stream" "memory" "512MiB" $s -}}
{{- else -}}
{{- .c.memory -}}
{{- end -}}
{{- end -}}

{{/* The limit of memory in MiB: what the process keeps its heap to, and a quarter of
that for what is no heap, in steps of 16. ingest and compact keep to the setting, a
quarter of it and 64 MiB; stream to the setting, a half of it and 64 MiB; serve and
verify, which bound only what they read, are counted as twice the setting and 128 MiB. */}}
{{- define "ledgerlake.memoryMiB" -}}
{{- $setting := include "ledgerlake.bytes" (include "ledgerlake.memorySetting" .) | int64 -}}
{{- $heap := 0 -}}
{{- if has .name (list "ingest" "compact") -}}
{{- $heap = add $setting (div $setting 4) 67108864 -}}
{{- else if eq .name "stream" -}}
{{- $heap = add $setting (div $setting 2) 67108864 -}}
{{- else -}}
{{- $heap = add (mul $setting 2) 134217728 -}}
{{- end -}}
{{- mul (div (add (div $heap 4) $heap 16777215) 16777216) 16 -}}
{{- end -}}

{{/* resources, with memory where none is given. */}}
{{- define "ledgerlake.resources" -}}
{{- $memory := printf "%sMi" (include "ledgerlake.memoryMiB" .) -}}
{{- $r := deepCopy .c.resources -}}
{{- range $which := list "limits" "requests" -}}
{{- $some := default dict (get $r $which) -}}
{{- if not (hasKey $some "memory") -}}{{- $_ := set $some "memory" $memory -}}{{- end -}}
{{- $_ := set $r $which $some -}}
{{- end -}}
{{- toYaml $r -}}
{{- end -}}

{{/* Seconds of a duration such as 1m30s, rounded up. */}}
{{- define "ledgerlake.seconds" -}}
{{- $ms := 0.0 -}}
{{- $units := dict "h" 3600000.0 "m" 60000.0 "s" 1000.0 "ms" 1.0 -}}
{{- range regexFindAll "[0-9.]+(ms|h|m|s)" . -1 -}}
{{- $ms = addf $ms (mulf (regexFind "^[0-9.]+" . | float64) (get $units (regexFind "[a-z]+$" .))) -}}
{{- end -}}
{{- ceil (divf $ms 1000.0) | int -}}
{{- end -}}

{{/* Longer than a clean stop may take: serve lets answers end for 10 s. */}}
{{- define "ledgerlake.graceSeconds" -}}
{{- if eq .name "serve" -}}
20
{{- else -}}
{{- $s := include "ledgerlake.given" . | fromYaml -}}
{{- add 10 (include "ledgerlake.seconds" (default "20s" (index $s "shutdown-timeout"))) -}}
{{- end -}}
{{- end -}}
