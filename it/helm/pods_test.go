package helm

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"
)

// templateOf returns the pod template of a workload; nil of another object.
func templateOf(t *testing.T, o object) *corev1.PodTemplateSpec {
	t.Helper()
	var deployment appsv1.Deployment
	var set appsv1.StatefulSet
	var cron batchv1.CronJob
	for kind, w := range map[string]struct {
		into     any
		template *corev1.PodTemplateSpec
	}{
		"Deployment":  {&deployment, &deployment.Spec.Template},
		"StatefulSet": {&set, &set.Spec.Template},
		"CronJob":     {&cron, &cron.Spec.JobTemplate.Spec.Template},
	} {
		if o.kind() == kind {
			if err := yaml.UnmarshalStrict([]byte(o.Text), w.into); err != nil {
				t.Fatal(err)
			}
			return w.template
		}
	}
	return nil
}

// Every pod is one that a namespace of Pod Security level restricted lets in, by
// Kubernetes' own judgement, and goes further: nothing of its image can be written,
// it has no token of the API server, and its memory is bounded.
func TestPodsAreRestricted(t *testing.T) {
	judge, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	restricted := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	eachCase(t, func(t *testing.T, _ string, all []object) {
		for _, o := range all {
			p := templateOf(t, o)
			if p == nil {
				continue
			}
			for _, r := range judge.EvaluatePod(restricted, &p.ObjectMeta, &p.Spec) {
				if !r.Allowed {
					t.Errorf("%s: %s: %s", o.name(), r.ForbiddenReason, r.ForbiddenDetail)
				}
			}
			c := p.Spec.Containers[0]
			if !*c.SecurityContext.ReadOnlyRootFilesystem || *p.Spec.SecurityContext.RunAsUser != 65532 || *p.Spec.AutomountServiceAccountToken {
				t.Errorf("%s: %v, %v", o.name(), c.SecurityContext, p.Spec.SecurityContext)
			}
			if c.Resources.Limits.Memory().IsZero() || c.Resources.Requests.Memory().IsZero() || c.Resources.Requests.Cpu().IsZero() {
				t.Errorf("%s: %v", o.name(), c.Resources)
			}
		}
	})
	bad := templateOf(t, object{Text: "kind: Deployment\nspec: {template: {spec: {containers: [{name: a}]}}}", Tree: map[string]any{"kind": "Deployment"}})
	if results := judge.EvaluatePod(restricted, &bad.ObjectMeta, &bad.Spec); !slices.ContainsFunc(results, func(r policy.CheckResult) bool { return !r.Allowed }) {
		t.Error("a pod without any restriction is let in")
	}
}

// No volume is mounted within another: within a ConfigMap or a Secret, which are
// read-only, the runtime could not make the folder for it, and the pod would not start.
func TestNoMountWithinAMount(t *testing.T) {
	eachCase(t, func(t *testing.T, _ string, all []object) {
		for _, o := range all {
			p := templateOf(t, o)
			if p == nil {
				continue
			}
			for _, a := range p.Spec.Containers[0].VolumeMounts {
				for _, b := range p.Spec.Containers[0].VolumeMounts {
					if strings.HasPrefix(b.MountPath, strings.TrimSuffix(a.MountPath, "/")+"/") {
						t.Errorf("%s: %s is within %s", o.name(), b.MountPath, a.MountPath)
					}
				}
			}
		}
	})
}

// labels returns labels, or a selector's, as a map of texts.
func labels(v any) map[string]any { m, _ := v.(map[string]any); return m }

// selects reports whether a selector means an object with these labels. An empty one
// means nothing here: it would be a slip.
func selects(selector, labels map[string]any) bool {
	for k, v := range selector {
		if labels[k] != v {
			return false
		}
	}
	return len(selector) > 0
}

// podLabels are the labels of a workload's pods; nil of another object.
func podLabels(o object) map[string]any {
	switch o.kind() {
	case "CronJob":
		return labels(o.at("spec", "jobTemplate", "spec", "template", "metadata", "labels"))
	case "Deployment", "StatefulSet":
		return labels(o.at("spec", "template", "metadata", "labels"))
	}
	return nil
}

// What selects pods selects those of one workload, of its own component.
func TestSelectors(t *testing.T) {
	eachCase(t, func(t *testing.T, _ string, all []object) {
		for _, o := range all {
			selector := labels(o.at("spec", "selector", "matchLabels"))
			switch o.kind() {
			case "Service":
				selector = labels(o.at("spec", "selector"))
			case "NetworkPolicy":
				selector = labels(o.at("spec", "podSelector", "matchLabels"))
			case "Deployment", "StatefulSet", "PodDisruptionBudget", "PodMonitor":
			default:
				continue
			}
			var found []string
			for _, w := range all {
				if selects(selector, podLabels(w)) {
					found = append(found, w.name())
				}
			}
			if len(found) != 1 || found[0] != strings.TrimSuffix(o.name(), "-metrics") {
				t.Errorf("%s %s selects the pods of %v", o.kind(), o.name(), found)
			}
		}
	})
}

// A ServiceMonitor finds one Service, by its labels, and a port of it. An autoscaler
// finds its workload, which then has no number of replicas of its own.
func TestWhatIsNamedIsThere(t *testing.T) {
	eachCase(t, func(t *testing.T, _ string, all []object) {
		for _, o := range all {
			switch o.kind() {
			case "ServiceMonitor":
				services := slices.DeleteFunc(slices.Clone(all), func(s object) bool {
					return s.kind() != "Service" || !selects(labels(o.at("spec", "selector", "matchLabels")), labels(s.at("metadata", "labels")))
				})
				if len(services) != 1 || !strings.Contains(services[0].Text, "- name: metrics") {
					t.Errorf("%s finds %d Services", o.name(), len(services))
				}
			case "HorizontalPodAutoscaler", "ScaledObject":
				w := one(t, all, o.text("spec", "scaleTargetRef", "kind"), o.text("spec", "scaleTargetRef", "name"))
				if w.at("spec", "replicas") != nil {
					t.Errorf("%s has replicas beside its autoscaler", w.name())
				}
			case "StatefulSet":
				one(t, all, "Service", o.text("spec", "serviceName"))
			case "Ingress":
				if !strings.Contains(o.Text, "name: "+one(t, all, "Service", "-serve").name()) {
					t.Errorf("%s leads to another Service", o.name())
				}
			}
			if p := templateOf(t, o); p != nil {
				one(t, all, "ServiceAccount", p.Spec.ServiceAccountName)
			}
		}
	})
}

// With IAM roles for service accounts, each component has a role of its own, and no
// Secret.
func TestRolesAreOfComponents(t *testing.T) {
	all := mustRender(t, readValues(t, chartDir+"/ci/aws-irsa.yaml"))
	roles := map[string]bool{}
	for _, o := range all {
		if o.kind() == "ServiceAccount" {
			roles[o.text("metadata", "annotations", "eks.amazonaws.com/role-arn")] = true
		}
		if strings.Contains(o.Text, "secretName") || strings.Contains(o.Text, "secretKeyRef") {
			t.Errorf("%s %s needs a Secret", o.kind(), o.name())
		}
	}
	if len(roles) != 3 || roles[""] {
		t.Errorf("%v", roles)
	}
}

// However long the names are that somebody chose, those of objects are short enough: 52
// characters for a CronJob, of whose name those of Jobs are made, and for a StatefulSet,
// of whose name labels are made.
func TestLongNames(t *testing.T) {
	long := strings.Repeat("audit-of-everything-", 5)
	for _, override := range []string{"nameOverride", "fullnameOverride"} {
		values := set(readValues(t, chartDir+"/ci/full.yaml"), []string{override}, long+"0")
		for _, o := range mustRender(t, values) {
			if name := o.name(); len(name) > 63 || (o.kind() == "CronJob" || podLabels(o) != nil) && len(name) > 52 || strings.Contains(name, "--") {
				t.Errorf("%s %s has %d characters", o.kind(), name, len(name))
			}
		}
	}
}

// No template can make a Secret: what is secret is made by somebody else, and named.
func TestNoSecretIsMade(t *testing.T) {
	eachCase(t, func(t *testing.T, _ string, all []object) {
		for _, o := range all {
			if o.kind() == "Secret" {
				t.Errorf("%s is made by the chart", o.name())
			}
		}
	})
}
