package s3sink

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

// A URL names a bucket, the part of it that holds an archive, and how to reach
// it:
//
//	s3://bucket/prefix?endpoint=https://minio.example:9000&region=eu-west-1
type URL struct {
	Bucket  string
	Prefix  string // "" or ends with a slash
	Options Options
}

// ParseURL reads a bucket URL. The parameters are those of [Settings]; an
// unknown one, one given twice and one that is empty are errors that name it,
// and so are secrets, because URLs end up in logs and process lists. No error
// repeats a secret.
func ParseURL(raw string) (URL, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return URL{}, errors.New("bucket URL is not a URL: want s3://bucket/prefix?setting=value") // the error would repeat all of it
	case u.User != nil:
		return URL{}, errors.New("bucket URL holds credentials: put them in settings or in the environment")
	case u.Scheme != "s3" || u.Opaque != "":
		return URL{}, errors.New("bucket URL does not begin with s3://")
	case u.Fragment != "" || strings.Contains(raw, "#"):
		return URL{}, errors.New("bucket URL has a fragment (#)")
	}
	parsed := URL{Bucket: u.Host}
	if err := checkBucketName(u.Host); err != nil {
		return URL{}, fmt.Errorf("bucket URL: %w", err)
	}
	if parsed.Prefix, err = parsePrefix(u.Path); err != nil {
		return URL{}, fmt.Errorf("bucket URL: %w", err)
	}
	if err := parsed.Options.setQuery(u.RawQuery); err != nil {
		return URL{}, fmt.Errorf("bucket URL: %w", err)
	}
	return parsed, nil
}

func (o *Options) setQuery(raw string) error {
	query, err := url.ParseQuery(raw)
	if err != nil {
		return errors.New("the parameters are not setting=value&setting=value")
	}
	for _, s := range settings {
		values, ok := query[s.Name]
		delete(query, s.Name)
		switch {
		case !ok:
			continue
		case s.Secret:
			return fmt.Errorf("%s is a secret: put it in settings or in the environment", s.Name)
		case len(values) > 1:
			return fmt.Errorf("%s is given %d times", s.Name, len(values))
		}
		if err := o.Set(s.Name, values[0]); err != nil {
			return err
		}
	}
	for name := range query {
		_, err := findSetting(name)
		return err
	}
	return o.check()
}

// String is the inverse of [ParseURL]. It leaves secrets out.
func (u URL) String() string {
	query := url.Values{}
	for _, s := range settings {
		if v := s.get(u.Options); v != "" && !s.Secret {
			query.Set(s.Name, v)
		}
	}
	out := url.URL{Scheme: "s3", Host: u.Bucket, Path: "/" + u.Prefix, RawQuery: query.Encode()}
	return out.String()
}

func checkBucketName(name string) error {
	if len(name) < 3 || len(name) > 255 {
		return fmt.Errorf("%q is not the name of a bucket", name)
	}
	for _, c := range name {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && !strings.ContainsRune("-_.", c) {
			return fmt.Errorf("%q is not the name of a bucket", name)
		}
	}
	if strings.HasSuffix(name, "--x-s3") {
		return fmt.Errorf("%s is a directory bucket, which does not list its keys in order", name)
	}
	return nil
}

// parsePrefix reads the path of a URL: "", "/", "/a/b" or "/a/b/".
func parsePrefix(path string) (string, error) {
	path = strings.TrimSuffix(strings.TrimPrefix(path, "/"), "/")
	if path == "" {
		return "", nil
	}
	steps := strings.Split(path, "/")
	for _, step := range steps {
		if slices.Contains([]string{"", ".", ".."}, step) {
			return "", fmt.Errorf("prefix %q has a step %q", path, step)
		}
	}
	control := func(r rune) bool { return r < 0x20 || r == 0x7f }
	if !utf8.ValidString(path) || strings.ContainsFunc(path, control) || len(path) > 400 {
		return "", fmt.Errorf("prefix %q: want at most 400 bytes of UTF-8 without control characters", path)
	}
	return path + "/", nil
}
