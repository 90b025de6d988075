package serve

import (
	"os"
	"strings"
	"testing"
)

// What is written for people has every path and every problem there is.
func TestWhatIsWrittenIsAll(t *testing.T) {
	text, err := os.ReadFile("../../docs/serve.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range routes() {
		if !strings.HasPrefix(r.path, "/page/") && !strings.Contains(string(text), "`"+r.path+"`") {
			t.Errorf("docs/serve.md lacks %s", r.path)
		}
		for _, p := range r.query {
			if p.name != "session" && !strings.Contains(string(text), p.name+"=") {
				t.Errorf("docs/serve.md lacks ?%s= of %s", p.name, r.path)
			}
		}
	}
	for _, p := range []*problem{
		errToken, errNowhere, errNoRecord, errMethod, errBody, errRequest, errBusy, errFull, errStored, errStore, errAnchor, errOthers, errPosition,
	} {
		if !strings.Contains(string(text), "`"+strings.TrimPrefix(p.Type, ProblemBase)+"`") {
			t.Errorf("docs/serve.md lacks the problem %s", p.Type)
		}
	}
}
