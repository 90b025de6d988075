//go:build it

package browser

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/ledgerlake/ledgerlake/export/serve/servetest"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// The story of the turn is on the page, in the order of the timeline.
func TestATurnIsShown(t *testing.T) {
	b := newTab(t, open(t, servetest.Archive()), 1280, 900)
	b.enterTurn(servetest.Turn)
	if title := js[string](b, "document.title"); !strings.Contains(title, servetest.Turn) {
		t.Errorf("title %q", title)
	}
	shown := js[string](b, "document.getElementById('view').innerText")
	for _, want := range []string{
		"ladder regression", "claude-opus-4-5", "gpt-5.1", "web.search", "sql.query", "Send this mail to 340 customers now?", "A human was asked", "A guard rejected the answer",
		"A policy denied it", "was erased, by order", "Subagent t-205", "Subagent t-206", "overloaded", "proved", "41,744", "$0.16",
	} {
		if !strings.Contains(shown, want) {
			t.Errorf("%q is not on the page:\n%s", want, shown)
		}
	}
	at := -1
	for _, want := range []string{"overloaded", "ladder regression", "crm.lookup", "web.search", "Subagent t-205", "mail.draft", "A guard rejected", "gpt-5.1", "post-turn"} {
		next := strings.Index(shown[at+1:], want)
		if next < 0 {
			t.Fatalf("%q does not come in order", want)
		}
		at += 1 + next
	}
}

// All can be done by the keyboard alone, and what has the focus can be seen.
func TestTheKeyboardAlone(t *testing.T) {
	b := newTab(t, open(t, servetest.Archive()), 1280, 900)
	b.enterTurn(servetest.Turn)
	focus := func() string {
		return js[string](b, `(() => { const e = document.activeElement; return e.id || e.closest('.step')?.querySelector('.seq')?.textContent || e.textContent })()`)
	}
	js[any](b, "(document.body.tabIndex = -1, document.body.focus(), document.body.removeAttribute('tabindex'), null)")
	b.press(kb.Tab)
	if focus() != "skip" {
		t.Errorf("the first stop is %q", focus())
	}
	b.until("document.getElementById('skip').getBoundingClientRect().top >= 0")
	b.press(kb.Enter)
	if focus() != "main" {
		t.Errorf("skipped to %q", focus())
	}
	for range 8 {
		if b.press(kb.Tab); strings.HasPrefix(focus(), "Number ") {
			break
		}
	}
	var walked []string
	for range 4 {
		walked = append(walked, focus())
		if !js[bool](b, `(() => { const s = getComputedStyle(document.activeElement); return s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 2 })()`) {
			t.Errorf("%q has the focus, and it cannot be seen", focus())
		}
		b.press(kb.ArrowDown)
	}
	if list(walked) != `["Number 0" "Number 1" "Number 2" "Number 3"]` {
		t.Errorf("down: %s", list(walked))
	}
	b.press(kb.End)
	if focus() != "Number 11" {
		t.Errorf("end: %q", focus())
	}
	b.press(kb.Home, kb.ArrowUp, kb.ArrowDown, kb.ArrowRight)
	if !js[bool](b, "document.activeElement.getAttribute('aria-expanded') === 'true'") {
		t.Error("the right arrow opens nothing")
	}
	b.until(`document.querySelector('.more:not([hidden]) pre')?.textContent.includes('"recordId"')`)
	b.until(`document.querySelector('.more:not([hidden])')?.innerText.includes('signed by anchors.example')`)
	b.press(kb.Escape)
	if focus() != "Number 1" || js[bool](b, "document.activeElement.getAttribute('aria-expanded') === 'true'") {
		t.Error("escape does not close")
	}
}

// A turn is chosen among those that are recent, a subagent is followed, and the
// way back leads back.
func TestFindingTurns(t *testing.T) {
	b := newTab(t, open(t, servetest.Archive()), 1280, 900)
	b.enter("")
	b.until(`document.querySelectorAll('#recent-list a').length >= 4`)
	b.do(chromedp.Click(chromedp.Search(`//nav//a[contains(., 't-204')]`)))
	b.until(`document.getElementById('title').textContent === 'Turn t-204'`)
	b.checked()
	b.do(chromedp.Click(chromedp.Search(`//button[contains(., 'Show its steps')]`)))
	b.until(`document.querySelectorAll('.sub .steps .step').length === 3`)
	b.do(chromedp.Click(chromedp.Search(`//h3/a[contains(., 't-205')]`)))
	b.until(`document.getElementById('title').textContent === 'Turn t-205'`)
	b.checked()
	b.do(chromedp.NavigateBack())
	b.until(`document.getElementById('title').textContent === 'Turn t-204'`)
	b.checked()
	b.do(chromedp.Click(chromedp.Search(`//main//a[contains(., 's-4711')]`)))
	b.until(`document.querySelectorAll('table.turns tbody tr').length === 3`)
	js[any](b, "(document.getElementById('session').value = '', null)")
	b.do(chromedp.SendKeys(chromedp.CSS("#turn"), "t-none"+kb.Enter))
	b.until(`document.getElementById('view').textContent.includes('no record of such a turn')`)
}

// What is archived while the page is open comes to it, where that is wanted.
func TestLive(t *testing.T) {
	a, l := servetest.Growing()
	s := open(t, a)
	b := newTab(t, s, 1280, 900)
	b.enterTurn("t-206")
	b.do(chromedp.Click(chromedp.CSS("#live")))
	b.until(`performance.getEntriesByType('resource').length > 0`)
	l.Segment(func(batch *prooftest.Batch) {
		text := servetest.Story()[9]
		servetest.Add(batch, strings.NewReplacer(`"seqWithinTurn":1`, `"seqWithinTurn":2`, "01KSRB6T0010", "01KSRB6T0099").Replace(text))
	})
	s.more(t)
	b.until(`document.querySelectorAll('.step').length === 3`)
	b.checked()
}

// A token that is not good is said to be so, and forgotten; so is one that is let
// go.
func TestTokens(t *testing.T) {
	s := open(t, servetest.Archive())
	b := newTab(t, s, 1280, 900)
	b.expected = []string{"401"}
	b.do(chromedp.Navigate(s.URL+"/"), chromedp.WaitVisible(chromedp.CSS("#token")), chromedp.SendKeys(chromedp.CSS("#token"), "llt_wrong"+kb.Enter))
	b.until(`document.getElementById('status').textContent.includes('no such token')`)
	if js[int](b, "sessionStorage.length") != 0 {
		t.Error("a token that is not good is kept")
	}
	b.do(chromedp.SendKeys(chromedp.CSS("#token"), s.token+kb.Enter))
	b.until(`document.getElementById('gate').hidden`)
	if js[int](b, "sessionStorage.length") != 1 || js[int](b, "localStorage.length") != 0 || js[string](b, "document.cookie") != "" {
		t.Error("the token is kept elsewhere than in the session")
	}
	b.do(chromedp.Click(chromedp.CSS("#forget")))
	b.until(`!document.getElementById('gate').hidden`)
	if js[int](b, "sessionStorage.length") != 0 || strings.Contains(js[string](b, "document.documentElement.outerHTML"), s.token) {
		t.Error("a token that was let go is still there")
	}
}

// Nothing that a producer writes runs, becomes markup, moves what stands around
// it, or stops the page.
func TestHostileRecords(t *testing.T) {
	b := newTab(t, open(t, servetest.HostileArchive()), 1280, 900)
	b.enterTurn(servetest.Hostile)
	n := len(servetest.Attacks())
	if got := js[int](b, "document.querySelectorAll('.step').length"); got != n {
		t.Errorf("%d steps of %d", got, n)
	}
	// All of them are opened.
	js[any](b, "(document.querySelectorAll('.step > .what > h3 > button').forEach(b => b.click()), null)")
	b.until(`document.querySelectorAll('.more pre').length === ` + js[string](b, "String(document.querySelectorAll('.step').length)"))
	if js[bool](b, "'pwned' in window") {
		t.Error("what a producer wrote was run")
	}
	if got := js[int](b, "document.querySelectorAll('#view img, #view script, #view svg, #view iframe, #view b b, #view [onerror], #view [onload], #view a[href]:not([href^=\"#\"])').length"); got != 0 {
		t.Errorf("%d elements are of a producer", got)
	}
	raw := `[...document.getElementById('main').innerText].filter(c => /[\u202a-\u202e\u2066-\u2069\u200b\ufeff\u0007\u001b]/.test(c)).length`
	if got := js[int](b, raw); got != 0 {
		t.Errorf("%d characters that are not seen, or turn the line around", got)
	}
	if !js[bool](b, `document.getElementById('view').innerText.includes('U+202E')`) {
		t.Error("a character that turns the line around is not spelled out")
	}
	if js[bool](b, "document.documentElement.scrollWidth > document.documentElement.clientWidth") {
		t.Error("a long text makes the page wider than the window")
	}
}

// The tree that a screen reader is given has landmarks, headings and lists, and
// a name for all that can be used.
func TestTheAccessibilityTree(t *testing.T) {
	b := newTab(t, open(t, servetest.Archive()), 1280, 900)
	b.enterTurn(servetest.Turn)
	call(b, accessibility.Enable, cdp.Empty{})
	nodes := call(b, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{}).Nodes
	roles := map[string][]string{}
	for _, n := range nodes {
		if n.Ignored || n.Role == nil {
			continue
		}
		role, name := text(n.Role.Value), ""
		if n.Name != nil {
			name = text(n.Name.Value)
		}
		roles[role] = append(roles[role], name)
		switch role {
		case "button", "link", "textbox", "combobox", "checkbox", "navigation", "search", "heading":
			if strings.TrimSpace(name) == "" {
				t.Errorf("a %s has no name", role)
			}
		}
	}
	for role, least := range map[string]int{"main": 1, "banner": 1, "navigation": 1, "search": 1, "heading": 12, "list": 2, "listitem": 12, "status": 1, "button": 14} {
		if len(roles[role]) < least {
			t.Errorf("%d of role %s, want %d: %s", len(roles[role]), role, least, list(roles[role]))
		}
	}
}

// axe-core finds nothing, in both colour schemes, on a small window, with all
// opened, and in front of the gate.
func TestAxe(t *testing.T) {
	script, err := os.ReadFile(filepath.Join("..", ".build", "axe", "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatal("no axe-core: it/setup.sh fetches it: ", err)
	}
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{1280, 320} {
			b := newTab(t, open(t, servetest.Archive()), width, 900, &emulation.MediaFeature{Name: "prefers-color-scheme", Value: scheme})
			b.do(chromedp.Navigate(b.site.URL+"/"), chromedp.WaitVisible(chromedp.CSS("#token")))
			axe(b, string(script), scheme+", gate")
			b.do(chromedp.Navigate("about:blank"))
			b.enterTurn(servetest.Turn)
			js[any](b, "(document.querySelectorAll('.step > .what > h3 > button, .sub button').forEach(b => b.click()), null)")
			b.until(`document.querySelectorAll('.more pre').length >= 12`)
			b.checked()
			axe(b, string(script), scheme+", turn")
			b.do(chromedp.Navigate(b.site.URL + "/#tenant=acme&session=" + servetest.Session))
			b.until(`document.querySelectorAll('table.turns').length === 1`)
			axe(b, string(script), scheme+", session")
		}
	}
}

func axe(b *tab, script, where string) {
	b.t.Helper()
	js[any](b, script+";null")
	found := js[string](b, `axe.run(document, { resultTypes: ['violations'] }).then(r => JSON.stringify(r.violations.map(v => [v.impact, v.id, v.help, ...v.nodes.slice(0, 3).map(n => n.html.slice(0, 200) + ' ' + n.failureSummary)])))`)
	var all [][]string
	if err := json.Unmarshal([]byte(found), &all); err != nil {
		b.t.Fatal(err)
	}
	for _, v := range all {
		b.t.Errorf("%s: %s", where, strings.Join(v, "\n  "))
	}
}

// At 320 pixels nothing is cut off, and nothing has to be scrolled sideways.
func TestSmall(t *testing.T) {
	b := newTab(t, open(t, servetest.Archive()), 320, 700)
	b.enterTurn(servetest.Turn)
	js[any](b, "(document.querySelectorAll('.step > .what > h3 > button').forEach(b => b.click()), null)")
	b.until(`document.querySelectorAll('.more pre').length >= 12`)
	if wide := js[int](b, "document.documentElement.scrollWidth"); wide > 320 {
		t.Errorf("the page is %d pixels wide: %s", wide, js[string](b, `[...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > 321).slice(0, 5).map(e => e.outerHTML.slice(0, 150)).join('\n')`))
	}
	shoot(b, "small")
}

// On paper there is the turn, and not what is for the screen.
func TestPaper(t *testing.T) {
	b := newTab(t, open(t, servetest.Archive()), 1280, 900)
	b.enterTurn(servetest.Turn)
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print"})
	if got := js[int](b, `[...document.querySelectorAll('#find, #recent, #tools')].filter(e => e.offsetParent !== null).length`); got != 0 {
		t.Errorf("%d things are printed that are for the screen", got)
	}
	pdf, err := chromedp.Run(b.Context, chromedp.PrintToPDF())
	if err != nil {
		t.Fatal(err)
	}
	if len(pdf) < 10_000 {
		t.Errorf("a page of %d bytes", len(pdf))
	}
}

// The picture that stands in the documentation.
func TestPicture(t *testing.T) {
	b := newTab(t, open(t, servetest.Archive()), 1280, 860)
	b.enterTurn(servetest.Turn)
	b.until(`document.getElementById('status').textContent.includes('Proofs')`)
	js[any](b, "(document.activeElement.blur(), null)")
	png := b.picture()
	if len(png) < 20_000 {
		t.Fatalf("a picture of %d bytes", len(png))
	}
	if *picture == "" {
		return
	}
	if err := os.MkdirAll(filepath.Dir(*picture), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(*picture, png, 0o644); err != nil {
		t.Fatal(err)
	}
}

// shoot keeps a picture where LEDGERLAKE_IT_PICTURES says, to look at.
func shoot(b *tab, name string) {
	dir := os.Getenv("LEDGERLAKE_IT_PICTURES")
	if dir == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), b.picture(), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// Other sights, to look at.
func TestSights(t *testing.T) {
	if os.Getenv("LEDGERLAKE_IT_PICTURES") == "" {
		t.Skip("LEDGERLAKE_IT_PICTURES names no folder")
	}
	b := newTab(t, open(t, servetest.Archive()), 1280, 900, &emulation.MediaFeature{Name: "prefers-color-scheme", Value: "dark"})
	b.enterTurn(servetest.Turn)
	js[any](b, "(document.querySelectorAll('.step > .what > h3 > button')[1].click(), document.querySelector('.sub button').click(), null)")
	b.until(`document.querySelectorAll('.more pre').length === 1 && document.querySelectorAll('.sub .step').length === 3`)
	b.checked()
	shoot(b, "dark")
	b.do(chromedp.Navigate(b.site.URL + "/#tenant=acme&session=" + servetest.Session))
	b.until(`document.querySelectorAll('table.turns').length === 1`)
	shoot(b, "session")
	h := newTab(t, open(t, servetest.HostileArchive()), 1280, 900)
	h.enterTurn(servetest.Hostile)
	shoot(h, "hostile")
}

// picture returns all of the page as a PNG.
func (b *tab) picture() []byte {
	b.t.Helper()
	png, err := chromedp.Run(b.Context, chromedp.FullScreenshot(100))
	if err != nil {
		b.t.Fatal(err)
	}
	return png
}
