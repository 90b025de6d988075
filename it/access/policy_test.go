package access

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// root of the repository, from here.
const root = "../.."

// roles are the policies, and in what of an archive each may make, and take away.
var roles = map[string]struct{ makes, takes []string }{
	"ingest":      {makes: []string{"ledgerlake.json", "log/", "anchor/", "key/"}},
	"compact":     {makes: []string{"data/", "catalog/", "key/", "sql/", "probe/"}, takes: []string{"log/", "data/", "catalog/", "probe/"}},
	"export":      {makes: []string{"export/"}},
	"serve":       {},
	"auditor":     {},
	"ingest-lock": {},

	"ingest-anchor-bucket": {makes: []string{"ledgerlake.json", "anchor/", "key/"}},
	"compact-lock":         {makes: []string{"ledgerlake.json"}},
	"compact-governance":   {},
}

// folders are where the objects of an archive lie, with a key of each.
var folders = map[string]string{
	"ledgerlake.json": "", "log/": "t/i/00000/1.parquet", "anchor/": "t/i/00000/1.note", "catalog/": "t/i/00000/1.note", "data/": "acme/x.parquet",
	"key/": "k.note", "export/": "siem/lease.json", "sql/": "rows/x.symlink", "probe/": "x", "elsewhere": "",
}

// Nobody makes anything but what is his, anchors are nobody's to take away, and
// nobody changes the bucket, or rights. The files are all that there are.
func TestPolicies(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "deploy", "iam", "*.json"))
	if err != nil || len(files) != len(roles) {
		t.Fatalf("%d policies, want %d; %v", len(files), len(roles), err)
	}
	for role, may := range roles {
		p, err := Read(root, role)
		if err != nil {
			t.Error(err)
			continue
		}
		for folder, name := range folders {
			object := objectsARN + folder + name
			for _, action := range []string{"s3:PutObject", "s3:DeleteObject", "s3:DeleteObjectVersion", "s3:AbortMultipartUpload"} {
				want := slices.Contains(may.takes, folder)
				switch action {
				case "s3:PutObject":
					want = slices.Contains(may.makes, folder)
				case "s3:AbortMultipartUpload":
					want = want && folder != "probe/"
				}
				if p.Allows(action, object) != want {
					t.Errorf("%s: %s on %s is allowed: %v", role, action, folder, !want)
				}
			}
		}
		for _, action := range []string{
			"s3:PutObjectAcl", "s3:PutBucketPolicy", "s3:DeleteBucket", "s3:PutBucketVersioning", "s3:PutLifecycleConfiguration",
			"s3:PutBucketObjectLockConfiguration", "s3:PutObjectLegalHold", "s3:PutObjectTagging", "iam:PassRole",
		} {
			if p.Allows(action, bucketARN) || p.Allows(action, objectsARN+"log/x") {
				t.Errorf("%s: %s is allowed", role, action)
			}
		}
		for _, s := range p.Statement {
			for _, r := range s.Resource {
				if r != bucketARN && !strings.HasPrefix(r, objectsARN) || strings.Count(r, "*") > 1 || strings.Contains(strings.TrimSuffix(r, "*"), "*") {
					t.Errorf("%s: %s: a resource is %s", role, s.Sid, r)
				}
			}
		}
	}
}

// Whoever reads can read all that verify does, and only what is the archive's.
func TestReaders(t *testing.T) {
	for _, role := range []string{"ingest", "compact", "export", "serve", "auditor"} {
		p, err := Read(root, role)
		if err != nil {
			t.Fatal(err)
		}
		if !p.Allows("s3:ListBucket", bucketARN) {
			t.Errorf("%s may not list: what is not there would be 403", role)
		}
		for folder, name := range folders {
			want := !slices.Contains([]string{"export/", "sql/", "probe/", "elsewhere"}, folder) || role == "export" && folder == "export/" || role == "compact" && folder == "sql/"
			if p.Allows("s3:GetObject", objectsARN+folder+name) != want {
				t.Errorf("%s: GET of %s is allowed: %v", role, folder, !want)
			}
		}
	}
}

// A policy that allows whole families of actions, denies, or has members that are
// not known is refused.
func TestPoliciesThatAreRefused(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "deploy", "iam"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"star":      `{"Version":"2012-10-17","Statement":[{"Sid":"A","Effect":"Allow","Action":["s3:*"],"Resource":["x"]}]}`,
		"deny":      `{"Version":"2012-10-17","Statement":[{"Sid":"A","Effect":"Deny","Action":["s3:GetObject"],"Resource":["x"]}]}`,
		"condition": `{"Version":"2012-10-17","Statement":[{"Sid":"A","Effect":"Allow","Action":["s3:GetObject"],"Resource":["x"],"Condition":{}}]}`,
		"nothing":   `{"Version":"2012-10-17","Statement":[]}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, "deploy", "iam", name+".json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(dir, name); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

// The commands of docs/permissions.md put the name of a bucket, and a prefix, into
// every place of every policy.
func TestBucketIsPutIn(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "permissions.md"))
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for line := range strings.Lines(string(page)) {
		command := strings.TrimSpace(line)
		if !strings.HasPrefix(command, "sed ") {
			continue
		}
		for role := range roles {
			cmd := exec.Command("sh", "-c", strings.Replace(command, "ingest.json", role+".json", 1))
			cmd.Dir = root
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%s: %v", command, err)
			}
			p := &Policy{}
			if err := json.Unmarshal(out, p); err != nil || strings.Contains(string(out), "BUCKET") {
				t.Errorf("%s, %s: %v; %s", command, role, err, out)
			}
			for _, s := range p.Statement {
				for _, r := range s.Resource {
					if r != "arn:aws:s3:::acme-audit" && strings.HasPrefix(r, "arn:aws:s3:::acme-audit/prod/") != strings.Contains(command, "prod") {
						t.Errorf("%s, %s: a resource is %s", command, role, r)
					}
				}
			}
			tried++
		}
	}
	if tried != 2*len(roles) {
		t.Errorf("%d were tried: is there another command?", tried)
	}
}
