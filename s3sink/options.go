package s3sink

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Options are the settings of a store. The zero value is AWS S3 with the
// region and the credentials that the AWS SDK finds in the environment, in the
// shared configuration files, in a web identity token or on the machine.
type Options struct {
	Region       string // "": the SDK's; with an endpoint and no region, us-east-1
	Endpoint     string // "": AWS, or AWS_ENDPOINT_URL
	PathStyle    *bool  // nil: on where an endpoint is given
	AccessKey    string // with SecretKey; "": ambient credentials
	SecretKey    string
	SessionToken string // only with AccessKey
	Profile      string // of the shared configuration files
	RoleARN      string // a role to assume with the credentials above
	ExternalID   string // only with RoleARN
	SSE          string // "", AES256, aws:kms or aws:kms:dsse; "": the bucket's default
	KMSKey       string // id or ARN; implies aws:kms
	StorageClass string // "": the bucket's default
	Checksum     Checksum
	Timeout      time.Duration // an attempt in which nothing moves for so long is given up; 0: 30 s
	Attempts     int           // of a read; 0: 3. A write has one

	// Locks are put on new objects by the first step of their keys: anchor,
	// catalog and key may have one.
	Locks map[string]Lock
	// Renew sets static keys anew after the store has refused them; nil: they
	// stay as they are. Ambient credentials are then looked up again anyway.
	Renew func(*Options) error
	// OnRequest is told of every HTTP request, once it is answered or has
	// failed; nil: nobody is. It must not block.
	OnRequest func(Request)
	// Now is the clock that [Doctor] holds the store's against, and that a lock's
	// days are counted from; nil: time.Now.
	Now func() time.Time
}

// A Setting is one option as a text: a parameter of a bucket URL, or whatever
// a settings file calls it.
type Setting struct {
	Name   string
	Doc    string // one line
	Secret bool   // refused in URLs, which end up in logs and process lists

	set func(*Options, string) error
	get func(Options) string
}

// settings is the list that ParseURL, Options.Set and docs/s3.md share.
var settings = []Setting{
	text("region", "region of the bucket; default: what the AWS SDK finds, or us-east-1 with an endpoint", func(o *Options) *string { return &o.Region }),
	text("endpoint", "URL of a store that is not AWS, such as https://minio.example:9000; default: AWS, or AWS_ENDPOINT_URL", func(o *Options) *string { return &o.Endpoint }),
	{
		Name: "path-style", Doc: "true: the bucket is the first step of the path; false: part of the host name; default: true with an endpoint, else false",
		set: setPathStyle, get: getPathStyle,
	},
	secret("access-key", "id of a static access key; default: ambient credentials", func(o *Options) *string { return &o.AccessKey }),
	secret("secret-key", "the secret of access-key", func(o *Options) *string { return &o.SecretKey }),
	secret("session-token", "the session token of a temporary access-key", func(o *Options) *string { return &o.SessionToken }),
	text("profile", "profile of the AWS shared configuration files; default: AWS_PROFILE", func(o *Options) *string { return &o.Profile }),
	text("role-arn", "role to assume (sts:AssumeRole) with the credentials", func(o *Options) *string { return &o.RoleARN }),
	text("external-id", "external id that the role's trust policy asks for", func(o *Options) *string { return &o.ExternalID }),
	text("sse", "server-side encryption: AES256, aws:kms or aws:kms:dsse; default: the bucket's", func(o *Options) *string { return &o.SSE }),
	text("kms-key", "id or ARN of the KMS key; implies sse=aws:kms", func(o *Options) *string { return &o.KMSKey }),
	text("storage-class", "storage class of new objects, one that can be read at once; default: the bucket's", func(o *Options) *string { return &o.StorageClass }),
	{
		Name: "checksum", Doc: "what protects an upload: crc32 (x-amz-checksum-crc32), sha256, md5 (Content-MD5) or none; default: crc32",
		set: func(o *Options, s string) (err error) { o.Checksum, err = ParseChecksum(s); return err },
		get: func(o Options) string { return string(o.Checksum) },
	},
	{
		Name: "timeout", Doc: "how long nothing may move in a request before it is given up; default: 30s",
		set: func(o *Options, s string) (err error) { o.Timeout, err = time.ParseDuration(s); return err },
		get: func(o Options) string { return orEmpty(o.Timeout != 0, o.Timeout.String()) },
	},
	{
		Name: "attempts", Doc: "how often a read is tried, 1 to 10; default: 3 (a write is tried once, and again by its caller)",
		set: func(o *Options, s string) (err error) { o.Attempts, err = strconv.Atoi(s); return err },
		get: func(o Options) string { return orEmpty(o.Attempts != 0, strconv.Itoa(o.Attempts)) },
	},
}

// Settings lists all settings, in the order of the docs.
func Settings() []Setting { return slices.Clone(settings) }

// Set sets an option by its setting's name.
func (o *Options) Set(name, value string) error {
	s, err := findSetting(name)
	if err != nil {
		return err
	}
	if value == "" {
		return fmt.Errorf("setting %s is empty", name)
	}
	if err := s.set(o, value); err != nil {
		if s.Secret {
			return fmt.Errorf("setting %s is not valid", name)
		}
		return fmt.Errorf("setting %s=%s: %w", name, oneLine(value), err)
	}
	return nil
}

// over returns o with all that is set in top in its place.
func (o Options) over(top Options) Options {
	for _, s := range settings {
		if v := s.get(top); v != "" {
			// A value that get gives is one that set takes.
			_ = s.set(&o, v)
		}
	}
	return o
}

// check returns an error that names what does not fit together.
func (o Options) check() error {
	_, sseKnown := kmsOf[o.SSE]
	switch {
	case (o.AccessKey == "") != (o.SecretKey == ""):
		return errors.New("access-key and secret-key go together")
	case o.SessionToken != "" && o.AccessKey == "":
		return errors.New("session-token goes with access-key")
	case o.Profile != "" && o.AccessKey != "":
		return errors.New("profile and access-key are two sources of credentials")
	case o.ExternalID != "" && o.RoleARN == "":
		return errors.New("external-id goes with role-arn")
	case !sseKnown:
		return fmt.Errorf("sse=%s: want AES256, aws:kms or aws:kms:dsse", o.SSE)
	case o.KMSKey != "" && o.SSE != "" && !kmsOf[o.SSE]:
		return fmt.Errorf("kms-key goes with sse=aws:kms, not with %s", o.SSE)
	case o.StorageClass == "GLACIER" || o.StorageClass == "DEEP_ARCHIVE":
		return fmt.Errorf("storage-class=%s cannot be read at once", o.StorageClass)
	case o.Timeout < 0:
		return fmt.Errorf("timeout=%s is negative", o.Timeout)
	case o.Attempts < 0 || o.Attempts > 10:
		return fmt.Errorf("attempts=%d: want 1 to 10", o.Attempts)
	}
	if _, err := ParseChecksum(string(o.Checksum)); o.Checksum != "" && err != nil {
		return fmt.Errorf("checksum=%s: %w", o.Checksum, err)
	}
	return checkEndpoint(o.Endpoint)
}

// kmsOf tells which kinds of encryption take a KMS key.
var kmsOf = map[string]bool{"": false, "AES256": false, "aws:kms": true, "aws:kms:dsse": true}

func checkEndpoint(endpoint string) error {
	if endpoint == "" {
		return nil
	}
	u, err := url.Parse(endpoint)
	switch {
	case err != nil:
		return errors.New("endpoint is not a URL")
	case u.User != nil:
		return errors.New("endpoint holds credentials: use access-key and secret-key, outside of URLs")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return fmt.Errorf("endpoint=%s: want http://host:port or https://host:port", endpoint)
	case strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("endpoint=%s: nothing may follow the host and port", endpoint)
	}
	return nil
}

func findSetting(name string) (Setting, error) {
	for _, s := range settings {
		if s.Name == name {
			return s, nil
		}
	}
	return Setting{}, fmt.Errorf("no setting is called %q; there are %s", name, settingNames())
}

func settingNames() string {
	names := make([]string, len(settings))
	for i, s := range settings {
		names[i] = s.Name
	}
	return strings.Join(names, ", ")
}

func text(name, doc string, field func(*Options) *string) Setting {
	return Setting{
		Name: name, Doc: doc,
		set: func(o *Options, s string) error { *field(o) = s; return checkText(s) },
		get: func(o Options) string { return *field(&o) },
	}
}

func secret(name, doc string, field func(*Options) *string) Setting {
	s := text(name, doc, field)
	s.Secret = true
	return s
}

// checkText refuses what would break a header or a line.
func checkText(s string) error {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] > 0x7e {
			return fmt.Errorf("byte %d is not printable ASCII", i)
		}
	}
	return nil
}

func setPathStyle(o *Options, s string) error {
	v, err := strconv.ParseBool(s)
	o.PathStyle = &v
	return err
}

func getPathStyle(o Options) string {
	if o.PathStyle == nil {
		return ""
	}
	return strconv.FormatBool(*o.PathStyle)
}

func orEmpty(keep bool, s string) string {
	if keep {
		return s
	}
	return ""
}
