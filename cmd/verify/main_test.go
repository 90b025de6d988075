package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/config"
	"github.com/ledgerlake/ledgerlake/proof"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

var update = flag.Bool("update", false, "write the golden files anew")

// lay writes an archive as plain files.
func lay(t *testing.T, change func(*prooftest.Archive, *prooftest.Line)) string {
	t.Helper()
	a := prooftest.New()
	l := a.Line("audit.calls", 0)
	l.Segment(func(b *prooftest.Batch) {
		b.Call("acme")
		b.Call("東京")
		b.Call("acme")
		b.Duplicate("acme", 0)
		b.Reject("acme", audit.ReasonInvalidJSON, []byte("{"))
	})
	l.Segment(func(b *prooftest.Batch) { b.Call("acme"); b.Skip(2, archive.GapControl) })
	l.Segment(func(b *prooftest.Batch) { b.Call("acme") })
	a.Line("audit.calls", 1).Segment(func(b *prooftest.Batch) { b.Call("globex") })
	change(a, l)
	dir := t.TempDir()
	for key, body := range a.Objects() {
		path := filepath.Join(dir, filepath.FromSlash(key))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, body, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func good(*prooftest.Archive, *prooftest.Line) {}

func lost(_ *prooftest.Archive, l *prooftest.Line) { l.Segment(func(b *prooftest.Batch) { b.Lost(3) }) }

func flipped(_ *prooftest.Archive, l *prooftest.Line) { l.Segments[1].Body[999] ^= 1 }

func changed(_ *prooftest.Archive, l *prooftest.Line) {
	l.Segments[2].Rows[0].Status = audit.Str("changed")
	l.Segments[2].Encode()
}

// do runs the command.
func do(t *testing.T, args ...string) (code int, stdout, stderr string, err error) {
	t.Helper()
	var out, errs bytes.Buffer
	code, err = run(context.Background(), append([]string{"--allow-unsigned"}, args...), nil, &out, &errs)
	return code, out.String(), errs.String(), err
}

// The exit code is the verdict, and the last line says it in words.
func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*prooftest.Archive, *prooftest.Line)
		args   []string
		code   int
		last   string
	}{
		{"good", good, nil, 0, "OK: 7 rows of 3 tenants in 4 segments are consistent in themselves (T0)"},
		{"one tenant", good, []string{"--tenant", "acme"}, 0, "OK: the rows of tenant acme"},
		{"one tenant that is not there", good, []string{"--tenant=nobody"}, 3, "INCOMPLETE: "},
		{"lost offsets", lost, nil, 4, "OK, BUT LOOK: "},
		{"a flipped bit", flipped, nil, 1, "FAULT: the archive was tampered with or is damaged: 1 fault; the first one is at log/audit.calls/"},
		{"a changed row", changed, nil, 1, "tenant acme, seq 4, record 01KBCDEFGHJKMNPQRSTV000008, offset 8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := lay(t, c.change)
			for _, target := range []string{dir, "file://" + dir} {
				for _, args := range [][]string{append(c.args, target), append([]string{target}, c.args...)} {
					code, out, stderr, err := do(t, args...)
					lines := strings.Split(strings.TrimRight(out, "\n"), "\n")
					if last := lines[len(lines)-1]; code != c.code || err != nil || !strings.Contains(last, c.last) || stderr != "" {
						t.Errorf("%q: exit %d, %v, stderr %q: %s", args, code, err, stderr, out)
					}
				}
			}
		})
	}
}

// What cannot run is exit 2 and an error of one line, with nothing on stdout.
func TestWhatCannotRun(t *testing.T) {
	dir := lay(t, good)
	for _, c := range []struct {
		args []string
		says string
	}{
		{nil, "want one bucket URL or folder, got 0"},
		{[]string{dir, dir}, "got 2"},
		{[]string{filepath.Join(dir, "nowhere")}, "no such file"},
		{[]string{t.TempDir()}, "no archive there"},
		{[]string{"https://example.org/x"}, "want s3://BUCKET"},
		{[]string{"file://host/x"}, "want s3://BUCKET"},
		{[]string{"s3://"}, "bucket"},
		{[]string{"s3://bucket?nonsense=1"}, "nonsense"},
		{[]string{"--tennant", "acme", dir}, "tennant"},
		{[]string{"--tenant"}, "tenant"},
		{[]string{"--memory", "lots", dir}, "256MiB"},
		{[]string{"--s3.path-style", "perhaps", dir}, "s3.path-style"},
		{[]string{"--config", filepath.Join(dir, "none.yaml"), dir}, "none.yaml"},
		{[]string{"--s3.secret-key", "hunter2", dir}, "no place for a secret"},
	} {
		code, out, _, err := do(t, c.args...)
		if code != exitCannotRun || err == nil || !strings.Contains(err.Error(), c.says) || out != "" || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: exit %d, %q, want %q", c.args, code, err, c.says)
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q shows a secret: %v", c.args, err)
		}
	}
}

// A variable that is no setting is an error, as it is for ledgerlake-ingest.
func TestUnknownVariablesAreErrors(t *testing.T) {
	_, err := run(context.Background(), []string{t.TempDir()}, []string{"LEDGERLAKE_S3_REGIN=x"}, &bytes.Buffer{}, &bytes.Buffer{})
	var fault *config.Error
	if !errors.As(err, &fault) || !strings.Contains(err.Error(), "LEDGERLAKE_S3_REGION") {
		t.Errorf("%v", err)
	}
}

// A person gets to read this.
func TestTheReportIsReadable(t *testing.T) {
	for name, change := range map[string]func(*prooftest.Archive, *prooftest.Line){
		"good": func(_ *prooftest.Archive, l *prooftest.Line) {
			l.Anchor()
			l.Segment(func(b *prooftest.Batch) { b.Call("acme") })
		},
		"lost":    lost,
		"flipped": flipped,
		"changed": changed,
	} {
		_, out, _, err := do(t, lay(t, change))
		if err != nil {
			t.Fatal(err)
		}
		golden := filepath.Join("testdata", name+".txt")
		if *update {
			if err := os.WriteFile(golden, []byte(out), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil || sizes(out) != sizes(string(want)) {
			t.Errorf("%v: %s is now:\n%s", err, golden, out)
		}
	}
}

// sizes takes out what a new encoder would change.
func sizes(report string) string {
	var b strings.Builder
	for i, line := range strings.Split(report, "\n") {
		if i > 0 && !strings.Contains(line, "SHA-256") {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

// --json prints the whole report, with the exit code in it.
func TestJSON(t *testing.T) {
	code, out, _, err := do(t, "--json", lay(t, changed))
	if err != nil {
		t.Fatal(err)
	}
	var r proof.Report
	d := json.NewDecoder(strings.NewReader(out))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		t.Fatal(err)
	}
	if code != 1 || r.Exit != 1 || r.Tier != "none" || r.Totals.Rows != 7 || len(r.Faults) != 1 || *r.Faults[0].Seq != 4 || r.Faults[0].Line.Partition != 0 {
		t.Errorf("exit %d: %s", code, out)
	}
	_, out, _, _ = do(t, "--json", lay(t, good))
	for _, list := range []string{`"faults": []`, `"strays": []`, `"less": []`, `"looks": []`} {
		if !strings.Contains(out, list) {
			t.Errorf("no %s in %s", list, out)
		}
	}
}

// An archive under suspicion does not get to write on the terminal.
func TestNamesFromTheArchiveDoNotReachTheTerminal(t *testing.T) {
	dir := lay(t, good)
	if err := os.WriteFile(filepath.Join(dir, "x\x1b[2J"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	code, out, _, err := do(t, dir)
	if code != 4 || err != nil || strings.Contains(out, "\x1b") || !strings.Contains(out, `x\x1b[2J`) {
		t.Errorf("exit %d, %v: %q", code, err, out)
	}
}

// Help teaches: what it does, an example, and every exit code.
func TestHelp(t *testing.T) {
	for _, flag := range []string{"--help", "-h"} {
		code, out, _, err := do(t, flag)
		for _, want := range []string{"ledgerlake-verify --key auditor.vkey", "  2  cannot run", "  1  tampered", "  3  nothing", "  4  proved", "  0  all", "--s3.region", "LEDGERLAKE_S3_SECRET_KEY"} {
			if code != 0 || err != nil || !strings.Contains(out, want) {
				t.Errorf("exit %d, %v: no %q in %s", code, err, want, out)
			}
		}
	}
	if code, out, _, _ := do(t, "--version"); code != 0 || out != "ledgerlake-verify dev\n" {
		t.Errorf("exit %d: %q", code, out)
	}
}

// Long work tells how far it is: now and then where that is asked for, and by a
// line that changes on a terminal.
func TestProgress(t *testing.T) {
	var b bytes.Buffer
	now := time.Unix(0, 0)
	p := &progress{w: &b, every: 10 * time.Second, now: func() time.Time { return now }, began: now, last: now}
	for i := range int64(25) {
		now = now.Add(time.Second)
		p.update(i, 25, i*100)
	}
	p.end()
	if want := "verify: 9 of 25 objects, 900 rows, 90 rows/s\nverify: 19 of 25 objects, 1900 rows, 95 rows/s\n"; b.String() != want {
		t.Errorf("%q", b.String())
	}
	b.Reset()
	p.over, p.last = true, time.Time{}
	p.update(25, 25, 2500)
	p.end()
	if line := "verify: 25 of 25 objects, 2500 rows, 100 rows/s"; b.String() != "\r"+line+"\r"+strings.Repeat(" ", len(line))+"\r" {
		t.Errorf("%q", b.String())
	}
	if _, _, stderr, _ := do(t, "--progress", lay(t, good)); stderr != "" {
		t.Errorf("short work says %q", stderr)
	}
}
