package sqlview

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"text/template"
)

//go:embed queries/*.sql
var sources embed.FS

// A Query is one of the queries that are ready to run on the views.
type Query struct {
	Name  string // as --query has it
	About string // one line
	body  *template.Template
}

// Queries returns all of them, by name.
func Queries() []*Query { return slices.Clone(queries) }

var queries = func() (all []*Query) {
	names, err := fs.Glob(sources, "queries/*.sql")
	if err != nil {
		panic(err) // of a constant pattern
	}
	for _, name := range names {
		body, err := sources.ReadFile(name)
		if err != nil {
			panic(err)
		}
		about, _, _ := strings.Cut(strings.TrimPrefix(string(body), "-- "), "\n")
		all = append(all, &Query{
			Name: strings.TrimSuffix(path.Base(name), ".sql"), About: about,
			body: template.Must(template.New(name).Funcs(functions(DuckDB)).Parse(string(body))),
		})
	}
	return all
}()

// QueryOf returns the query of a name. The error matches [ErrUnknown].
func QueryOf(name string) (*Query, error) {
	for _, q := range queries {
		if q.Name == name {
			return q, nil
		}
	}
	return nil, fmt.Errorf("query %q: %w: --list has them", name, ErrUnknown)
}

// Parameters are what a query is asked with; empty ones narrow nothing.
type Parameters struct {
	Tenant, Turn string
}

// OfTurn reports whether the query can be narrowed to a turn.
func (q *Query) OfTurn() bool { return q.Name == "tool-cascades" }

// Text returns the query in the dialect of an engine, ending with ";\n".
func (q *Query) Text(e *Engine, p Parameters) (string, error) {
	body, err := q.body.Clone()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	if err := body.Funcs(functions(e)).Execute(&b, p); err != nil {
		return "", err
	}
	return b.String(), nil
}

// functions are what a query may ask of its engine. Members are of a column that
// holds JSON, by a path of names that are joined by dots.
func functions(e *Engine) template.FuncMap {
	of := func(k kind, part bool) func(slot, path string) string {
		return func(slot, path string) string { return e.member(slot, &member{path: path, kind: k, part: part}) }
	}
	return template.FuncMap{
		"text":     of(text, false),
		"int":      of(int64Kind, false),
		"part":     of(text, true),
		"day":      e.day,
		"moment":   e.moment,
		"quantile": e.quantile,
		"total":    e.total,
		"literal":  e.literal,
		"double":   func() string { return e.types[double] },
	}
}
