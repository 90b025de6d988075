package helm

import (
	"encoding/json"
	"slices"
	"testing"
)

// A NetworkPolicy lets a pod reach every port that its settings name: also that of a
// KMS, of a bucket of copies and of a collector of traces of one's own, and a store
// that is named by the bucket's URL or by the environment alone.
func TestEgress(t *testing.T) {
	ports := func(settings, env string) []int {
		t.Helper()
		all := mustRender(t, parseValues(t, `
settings: {bucket: "s3://audit", topics: [audit.calls], brokers: ["kafka:9093"]}
ingest: {settings: `+settings+`}
env: `+env+`
networkPolicy: {enabled: true}`))
		body, err := json.Marshal(one(t, all, "NetworkPolicy", "-ingest").at("spec", "egress"))
		var rules []struct{ Ports []struct{ Port int } }
		if err == nil {
			err = json.Unmarshal(body, &rules)
		}
		if err != nil {
			t.Fatal(err)
		}
		var found []int
		for _, r := range rules {
			for _, p := range r.Ports {
				found = append(found, p.Port)
			}
		}
		slices.Sort(found)
		return slices.Compact(found)
	}
	for _, c := range []struct {
		settings, env string
		want          []int
	}{
		{"{}", "{}", []int{53, 443, 9093}},
		{`{bucket: "s3://audit?endpoint=http%3a%2f%2fminio%3a9000"}`, "{}", []int{53, 9000, 9093}},
		{"{}", `{AWS_ENDPOINT_URL: "https://store:9443"}`, []int{53, 9093, 9443}},
		{`{s3: {endpoint: "http://minio"}}`, `{AWS_ENDPOINT_URL: "https://store:9443"}`, []int{53, 80, 9093}},
		{`{anchor-kms-key: "alias/anchors", kms: {endpoint: "http://kms:4566"}}`, "{}", []int{53, 443, 4566, 9093}},
		{`{anchor-bucket: "s3://copies?endpoint=https://other:8443"}`, "{}", []int{53, 443, 8443, 9093}},
		{"{}", `{OTEL_EXPORTER_OTLP_ENDPOINT: "http://a:4318", OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "http://b:4319/v1/traces"}`, []int{53, 443, 4319, 9093}},
	} {
		if got := ports(c.settings, c.env); !slices.Equal(got, c.want) {
			t.Errorf("%s %s: %v, want %v", c.settings, c.env, got, c.want)
		}
	}
}
