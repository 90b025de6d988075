package helm

import (
	"bytes"
	"errors"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/ledgerlake/ledgerlake/config"
	"github.com/ledgerlake/ledgerlake/redact"
	"github.com/ledgerlake/ledgerlake/retention"
)

// etc is where pods have their settings.
const etc = "/etc/ledgerlake"

// A pod is what a component runs as: as much of a pod's manifest as tests look at.
type pod struct {
	ServiceAccountName            string
	AutomountServiceAccountToken  *bool
	TerminationGracePeriodSeconds int
	Containers                    []struct {
		Name          string
		Command, Args []string
		Env           []struct {
			Name, Value string
			ValueFrom   map[string]any
		}
		Ports []struct {
			Name          string
			ContainerPort int
		}
		VolumeMounts []struct{ Name, MountPath string }
		Resources    struct{ Limits, Requests map[string]string }
		LivenessProbe,
		ReadinessProbe struct {
			HTTPGet struct{ Path, Port string } `json:"httpGet"`
		}
	}
	Volumes []struct {
		Name      string
		ConfigMap struct{ Name string }
		Secret    struct {
			SecretName string
			Items      []struct{ Key, Path string }
		}
	}
}

// podOf returns the pod of a workload, if the object is one.
func podOf(t *testing.T, o object) (p pod, component string, ok bool) {
	t.Helper()
	spec := o.at("spec", "template", "spec")
	switch o.kind() {
	case "CronJob":
		spec = o.at("spec", "jobTemplate", "spec", "template", "spec")
	case "Deployment", "StatefulSet":
	default:
		return pod{}, "", false
	}
	text, err := yaml.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &p); err != nil {
		t.Fatal(err)
	}
	return p, o.text("metadata", "labels", "app.kubernetes.io/component"), true
}

// eachPod runs f for each pod of all cases.
func eachPod(t *testing.T, f func(t *testing.T, all []object, o object, component string, p pod)) {
	t.Helper()
	eachCase(t, func(t *testing.T, _ string, all []object) {
		for _, o := range all {
			if p, component, ok := podOf(t, o); ok {
				t.Run(component, func(t *testing.T) { f(t, all, o, component, p) })
			}
		}
	})
}

var secretFile = regexp.MustCompile(`/etc/ledgerlake/secrets/([^/\s"',]+)/([^/\s"',]+)`)

// isMounted reports whether a key of a Secret is a file in the pod.
func (p pod) isMounted(secret, key string) bool {
	for _, v := range p.Volumes {
		if v.Secret.SecretName != secret {
			continue
		}
		mounted := false
		for _, m := range p.Containers[0].VolumeMounts {
			mounted = mounted || m.Name == v.Name && m.MountPath == etc+"/secrets/"+secret
		}
		for _, i := range v.Secret.Items {
			if i.Key == key && i.Path == key {
				return mounted
			}
		}
		return mounted && len(v.Secret.Items) == 0
	}
	return false
}

// moved lays out the files of a pod below a folder, and returns its arguments as they
// are there. Secrets hold something that could be right.
func (p pod) moved(t *testing.T, all []object, dir string) (args []string) {
	t.Helper()
	i := slices.IndexFunc(p.Volumes, func(v struct {
		Name      string
		ConfigMap struct{ Name string }
		Secret    struct {
			SecretName string
			Items      []struct{ Key, Path string }
		}
	},
	) bool {
		return v.Name == "config"
	})
	m := one(t, all, "ConfigMap", p.Volumes[i].ConfigMap.Name)
	text := strings.Join(p.Containers[0].Args, "\n")
	for name, body := range m.at("data").(map[string]any) {
		text += "\n" + body.(string)
		write(t, filepath.Join(dir, "settings", name), strings.ReplaceAll(body.(string), etc, dir))
	}
	for _, f := range secretFile.FindAllStringSubmatch(text, -1) {
		if !p.isMounted(f[1], f[2]) {
			t.Errorf("%s is named, and not mounted", f[0])
		}
		write(t, filepath.Join(dir, "secrets", f[1], f[2]), strings.Repeat("0123456789abcdef", 4))
	}
	for _, a := range p.Containers[0].Args {
		args = append(args, strings.ReplaceAll(a, etc, dir))
	}
	return args
}

func write(t *testing.T, name, body string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(body), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// environ is the pod's environment.
func (p pod) environ() (all []string) {
	for _, e := range p.Containers[0].Env {
		value := e.Value
		if e.ValueFrom["fieldRef"] != nil {
			value = "pod-0"
		} else if e.ValueFrom != nil {
			value = "name=secret" // headers of OTLP have this form
		}
		all = append(all, e.Name+"="+value)
	}
	return all
}

// A command is what the tests need to know of the settings that one has read.
type command struct {
	listen   string
	instance string // kafka.instance-id
	memory   int64  // bytes that the heap is kept to
	shutdown time.Duration
}

// load reads arguments, environment and file as the commands do that run for long.
func load(component string, in config.Input) (c command, err error) {
	var origins config.Origins
	switch component {
	case "ingest":
		var s config.Ingest
		origins, err = config.Load(s.Sections(), s.Sections(), in)
		if err == nil {
			err = s.Check(origins)
		}
		return command{s.HTTP.Listen, s.Kafka.InstanceID, s.Memory + s.Memory/4 + 64<<20, s.ShutdownTimeout}, err
	case "compact":
		var s config.Compact
		origins, err = config.Load(s.Sections(), s.Sections(), in)
		if err == nil {
			err = errors.Join(s.Check(origins), s.CheckSigning(origins))
		}
		return command{s.HTTP.Listen, s.Kafka.InstanceID, s.Memory + s.Memory/4 + 64<<20, s.ShutdownTimeout}, err
	default:
		var s config.Stream
		origins, err = config.Load(s.Sections(), s.Sections(), in)
		if err == nil {
			err = s.Check(origins)
		}
		return command{s.HTTP.Listen, "", s.Memory + s.Memory/2 + 64<<20, s.ShutdownTimeout}, err
	}
}

// The commands take what the chart gives them: every setting is one, every file that
// is named is mounted, and probes, limits and times go with what was read.
func TestCommandsTakeTheSettings(t *testing.T) {
	eachPod(t, func(t *testing.T, all []object, o object, component string, p pod) {
		if !slices.Contains([]string{"ingest", "compact", "stream"}, component) {
			return
		}
		dir := t.TempDir()
		args := p.moved(t, all, dir)
		c, err := load(component, config.Input{Args: args[1:], Environ: p.environ()})
		if err != nil {
			t.Fatal(err)
		}
		p.fits(t, c)
		if want := o.kind() == "StatefulSet" && component != "stream"; want != (c.instance == "pod-0") {
			t.Errorf("%s: kafka.instance-id is %q", o.kind(), c.instance)
		}
		if component == "stream" {
			if d, err := config.Destinations(dir+"/settings/config.yaml", p.environ()); err != nil || len(d) == 0 {
				t.Errorf("%v, %v", d, err)
			}
		}
		if text, err := os.ReadFile(dir + "/settings/scrub.yaml"); err == nil {
			if _, err := redact.ParsePolicy(text); err != nil {
				t.Error(err)
			}
		}
		if text, err := os.ReadFile(dir + "/settings/retention.yaml"); err == nil {
			if _, err := retention.Parse(text); err != nil {
				t.Error(err)
			}
		}
	})
}

// fits says where the pod does not go with what its command was told.
func (p pod) fits(t *testing.T, c command) {
	t.Helper()
	first := p.Containers[0]
	if len(first.Ports) == 0 || first.Ports[0].Name != "metrics" || c.listen != ":"+itoa(first.Ports[0].ContainerPort) {
		t.Errorf("ports %v, and http.listen %q", first.Ports, c.listen)
	}
	if got := time.Duration(p.TerminationGracePeriodSeconds) * time.Second; got <= c.shutdown || got > c.shutdown+time.Minute {
		t.Errorf("killed after %v, with a shutdown-timeout of %v", got, c.shutdown)
	}
	limit := resource.MustParse(first.Resources.Limits["memory"])
	if least := c.memory * 11 / 10; limit.Value() < least || limit.Value() > 2*c.memory {
		t.Errorf("a limit of %v, with a heap of %d MiB", first.Resources.Limits["memory"], c.memory>>20)
	}
}

// The table of memory in docs/kubernetes.md is what the chart gives by default.
func TestMemoryOfDocs(t *testing.T) {
	page, err := os.ReadFile(root + "/docs/kubernetes.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^\| ([a-z, ]+) \| [0-9]+MiB \| .* \| ([0-9]+Mi) \|$`).FindAllStringSubmatch(string(page), -1)
	documented := map[string]string{}
	for _, row := range rows {
		for _, component := range strings.Split(row[1], ", ") {
			documented[component] = row[2]
		}
	}
	all := mustRender(t, parseValues(t, `
settings: {bucket: "s3://audit", topics: [audit.calls]}
stream: {enabled: true, destinations: [{name: lake, type: file, path: /tmp}]}
serve: {enabled: true, plainHTTP: true, tokens: {secret: a, key: b}}
verify: {enabled: true, allowUnsigned: true}`))
	for _, o := range all {
		if p, component, ok := podOf(t, o); ok {
			if got := p.Containers[0].Resources.Limits["memory"]; got != documented[component] {
				t.Errorf("%s: %s, and docs/kubernetes.md says %q", component, got, documented[component])
			}
			delete(documented, component)
		}
	}
	if len(documented) > 0 || len(rows) == 0 {
		t.Errorf("%d rows, and no pods of %v", len(rows), documented)
	}
}

func itoa(n int) string {
	return strings.TrimSpace(resource.NewQuantity(int64(n), resource.DecimalSI).String())
}

// Each pod that runs for long is asked how it is where its command answers.
func TestProbes(t *testing.T) {
	eachPod(t, func(t *testing.T, _ []object, _ object, component string, p pod) {
		c := p.Containers[0]
		live, ready := c.LivenessProbe.HTTPGet, c.ReadinessProbe.HTTPGet
		switch {
		case component == "verify" && live.Path == "" && ready.Path == "":
		case live.Path == "/healthz" && ready.Path == "/readyz" && live.Port == "metrics" && ready.Port == "metrics":
		default:
			t.Errorf("%+v, %+v", live, ready)
		}
		if component == "serve" && !slices.Contains(c.Args, "--metrics=:"+itoa(c.Ports[0].ContainerPort)) {
			t.Errorf("%v: --metrics is not the port %v", c.Args, c.Ports[0])
		}
	})
}

// bin is a folder for what is built once for all tests.
var bin string

func TestMain(m *testing.M) {
	var err error
	if bin, err = os.MkdirTemp("", "helm"); err != nil {
		panic(err)
	}
	log.SetOutput(io.Discard) // helm lint logs what it lets pass without values
	code := m.Run()
	_ = os.RemoveAll(bin)
	os.Exit(code)
}

// build builds the commands that read their flags themselves, as make build does, so
// that the compiler's cache has most of it.
func build(t *testing.T) {
	t.Helper()
	c := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", bin, "./cmd/verify", "./cmd/export")
	c.Dir = root
	c.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// serve and verify read their flags themselves: the built commands take what the
// chart gives them, and go on until they find that the folder has no archive.
func TestCommandsTakeTheFlags(t *testing.T) {
	t.Parallel()
	build(t)
	eachPod(t, func(t *testing.T, all []object, _ object, component string, p pod) {
		if component != "serve" && component != "verify" {
			return
		}
		dir := t.TempDir()
		args := p.moved(t, all, dir)
		program := map[string]string{"serve": "export", "verify": "verify"}[component]
		if !strings.HasSuffix(p.Containers[0].Command[0], "/ledgerlake-"+program) {
			t.Errorf("%v", p.Containers[0].Command)
		}
		if component == "verify" {
			args = args[:len(args)-1] // the bucket
			args = slices.DeleteFunc(args, func(a string) bool { return strings.HasPrefix(a, "--expect-from=kafka:") })
		}
		empty := filepath.Join(dir, "empty")
		write(t, filepath.Join(empty, "nothing"), "")
		if says := run(t, filepath.Join(bin, program), append(args, empty), p.environ()); !strings.Contains(says, "no archive") {
			t.Error(says)
		}
		if says := run(t, filepath.Join(bin, program), append(args, "--no-such-flag", empty), p.environ()); !strings.Contains(says, "no-such-flag") {
			t.Error(says)
		}
	})
}

// run returns what a command that cannot run says.
func run(t *testing.T, program string, args, environ []string) string {
	t.Helper()
	var stderr bytes.Buffer
	c := exec.Command(program, args...)
	c.Env, c.Stderr = environ, &stderr
	var ended *exec.ExitError
	if err := c.Run(); !errors.As(err, &ended) || ended.ExitCode() != 2 {
		t.Errorf("%s %v: %v", program, args, err)
	}
	return stderr.String()
}

// A change of a setting replaces the pods of the components that have it, and no
// others.
func TestChecksum(t *testing.T) {
	const values = "settings: {bucket: 's3://audit', brokers: 'kafka:9092', topics: [audit.calls]}\n"
	sum := func(values, component string) string {
		o := one(t, mustRender(t, parseValues(t, values)), "Deployment", component)
		return o.text("spec", "template", "metadata", "annotations", "checksum/config")
	}
	more := values + "ingest: {settings: {window: 1000000}}"
	if a, b := sum(values, "ingest"), sum(more, "ingest"); a == b || len(a) != 64 {
		t.Errorf("%q, then %q", a, b)
	}
	if a, b := sum(values, "compact"), sum(more, "compact"); a != b {
		t.Errorf("%q, then %q", a, b)
	}
}
