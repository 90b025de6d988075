package serve

import (
	"embed"
	"io/fs"
	"strings"
)

// page is the timeline page: files that are served as they are. It has no build
// step, and asks no other host for anything.
//
//go:embed page
var page embed.FS

// policy is what the page may do: its own files, its own server, and nothing
// else. Source: Content Security Policy, level 3.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"

var pageMedia = map[string]string{
	".html": mediaHTML,
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// pageRoutes returns a route for each file of the page.
func pageRoutes() []route {
	all := []route{{
		name: "page", path: "/", summary: "The timeline page", open: true,
		answers: []answer{{200, mediaHTML, "", "for people"}}, serve: pageFile("index.html"),
	}}
	files, _ := fs.ReadDir(page, "page") // it is part of the program
	for _, f := range files {
		if f.Name() == "index.html" {
			continue
		}
		all = append(all, route{
			name: "page" + strings.NewReplacer(".", "_").Replace(f.Name()), path: "/page/" + f.Name(), summary: "A file of the timeline page", open: true,
			answers: []answer{{200, pageMedia[extension(f.Name())], "", "the file"}}, serve: pageFile(f.Name()),
		})
	}
	return all
}

func extension(name string) string { return name[strings.LastIndexByte(name, '.'):] }

func pageFile(name string) func(*Server, *call) error {
	return func(_ *Server, c *call) error {
		b, err := page.ReadFile("page/" + name)
		if err != nil {
			return err
		}
		h := c.w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
		h.Set("Cache-Control", "no-cache")
		return c.body(pageMedia[extension(name)], b)
	}
}
