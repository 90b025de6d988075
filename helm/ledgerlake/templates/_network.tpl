{{/* What a component reaches, by its settings: dict "root" $ "name" COMPONENT "c" VALUES. */}}

{{/* The port of a URL. */}}
{{- define "ledgerlake.urlPort" -}}
{{- $u := urlParse . -}}
{{- $port := regexFind ":[0-9]+$" $u.host | trimPrefix ":" -}}
{{- default (ternary "80" "443" (eq $u.scheme "http")) $port -}}
{{- end -}}

{{/* The endpoint that the URL of a bucket names, "" where it names none. */}}
{{- define "ledgerlake.endpointOf" -}}
{{- regexFind "[?&]endpoint=[^&]+" . | regexFind "=.*" | trimPrefix "=" | replace "%3A" ":" | replace "%3a" ":" | replace "%2F" "/" | replace "%2f" "/" -}}
{{- end -}}

{{/* Where the store is, "" where that is AWS. A parameter of the bucket's URL goes
before the setting, and that before the environment. */}}
{{- define "ledgerlake.endpoint" -}}
{{- $s := include "ledgerlake.given" . | fromYaml -}}
{{- $env := get (merge dict .c.env .root.Values.env) "AWS_ENDPOINT_URL" -}}
{{- coalesce (include "ledgerlake.endpointOf" (default "" $s.bucket)) (dig "s3" "endpoint" "" $s) $env "" -}}
{{- end -}}

{{/* The ports of brokers, as a list of numbers in a text. */}}
{{- define "ledgerlake.brokerPorts" -}}
{{- $s := include "ledgerlake.given" . | fromYaml -}}
{{- $brokers := default "127.0.0.1:9092" $s.brokers -}}
{{- if eq .name "verify" -}}{{- $brokers = .c.expectFrom -}}{{- end -}}
{{- $text := ternary (join "," $brokers) (toString $brokers) (kindIs "slice" $brokers) -}}
{{- range regexFindAll ":[0-9]+" $text -1 | uniq | sortAlpha }}
- {{ trimPrefix ":" . }}
{{- end -}}
{{- end -}}

{{- define "ledgerlake.egressPorts" -}}
{{- $endpoint := include "ledgerlake.endpoint" . -}}
{{- $store := "443" -}}
{{- if $endpoint -}}{{- $store = include "ledgerlake.urlPort" $endpoint -}}{{- end }}
- {port: {{ $store }}, for: The store.}
{{- $given := include "ledgerlake.given" . | fromYaml }}
{{- if and (ne $store "443") (or (index $given "anchor-kms-key") (index $given "catalog-kms-key") (dig "s3" "role-arn" "" $given) (ne (default "none" (index $given "anchor-bucket")) "none")) }}
- {port: 443, for: "KMS, STS, and the bucket of copies."}
{{- end }}
{{- with dig "kms" "endpoint" "" $given }}
- {port: {{ include "ledgerlake.urlPort" . }}, for: KMS.}
{{- end }}
{{- with include "ledgerlake.endpointOf" (default "" (index $given "anchor-bucket")) }}
- {port: {{ include "ledgerlake.urlPort" . }}, for: The bucket of copies.}
{{- end }}
{{- if include "ledgerlake.usesKafka" . }}
{{- range include "ledgerlake.brokerPorts" . | fromYamlArray }}
- {port: {{ . }}, for: Kafka.}
{{- end }}
{{- with dig "kafka" "sasl" "oauth" "token-url" "" $given }}
- {port: {{ include "ledgerlake.urlPort" . }}, for: The token service of Kafka.}
{{- end }}
{{- end }}
{{- $env := merge dict .c.env .root.Values.env }}
{{- with coalesce (get $env "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") (get $env "OTEL_EXPORTER_OTLP_ENDPOINT") }}
- {port: {{ include "ledgerlake.urlPort" . }}, for: Traces.}
{{- end }}
{{- end -}}
