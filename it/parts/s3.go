//go:build it

package parts

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// The keys of every S3 server here, and the region that it plays.
const (
	AccessKey = "ledgerlake-it"
	SecretKey = "ledgerlake-it-secret"
	Region    = "us-east-1"
)

// Credentials are the keys as the environment of an S3 client.
func Credentials() []string {
	return []string{"AWS_ACCESS_KEY_ID=" + AccessKey, "AWS_SECRET_ACCESS_KEY=" + SecretKey, "AWS_REGION=" + Region}
}

// An S3 is a versitygw server process whose objects are plain files.
type S3 struct {
	Endpoint string // http://host:port; stays over restarts

	dir  string
	addr string
	args []string // more flags
	proc *Process
}

// StartS3 starts a server with its data in dir, which it creates.
func StartS3(dir string) (*S3, error) { return startS3(dir) }

// StartS3With is StartS3 for a server that knows users beside its root: ordinary
// ones, whose secret key is their name and "-secret", and who may do what the
// policy of a bucket says. It writes a line of each request to [S3.AccessLog].
func StartS3With(dir string, users ...string) (*S3, error) {
	type account struct {
		Access string `json:"access"`
		Secret string `json:"secret"`
		Role   string `json:"role"`
	}
	accounts := map[string]account{}
	for _, name := range users {
		accounts[name] = account{name, name + "-secret", "user"}
	}
	body, err := json.Marshal(map[string]any{"accessAccounts": accounts})
	if err != nil {
		return nil, err
	}
	iam := filepath.Join(dir, "iam")
	if err := os.MkdirAll(iam, 0o755); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(iam, "users.json"), body, 0o600); err != nil {
		return nil, err
	}
	return startS3(dir, "--iam-dir", iam, "--access-log", filepath.Join(dir, "access.log"))
}

// AccessLog returns the file with a line for each request, where [StartS3With] has
// started the server.
func (s *S3) AccessLog() string { return filepath.Join(s.dir, "access.log") }

// CredentialsOf are the keys of a user of [StartS3With].
func CredentialsOf(user string) []string {
	return []string{"AWS_ACCESS_KEY_ID=" + user, "AWS_SECRET_ACCESS_KEY=" + user + "-secret", "AWS_REGION=" + Region}
}

func startS3(dir string, args ...string) (*S3, error) {
	addrs, err := freeAddrs(1)
	if err != nil {
		return nil, err
	}
	for _, sub := range []string{"data", "versions", "meta"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return nil, err
		}
	}
	s := &S3{Endpoint: "http://" + addrs[0], dir: dir, addr: addrs[0], args: args}
	return s, s.Start()
}

// Start starts the server again on its old data and waits until it answers.
func (s *S3) Start() error {
	var err error
	env := []string{"ROOT_ACCESS_KEY=" + AccessKey, "ROOT_SECRET_KEY=" + SecretKey}
	args := append([]string{"--port", s.addr, "--region", Region, "--quiet"}, s.args...)
	args = append(args, "posix", "--versioning-dir", filepath.Join(s.dir, "versions"))
	if len(s.args) > 0 {
		args = append(args, "--sidecar", filepath.Join(s.dir, "meta")) // attributes of files have no room for the policy of many users
	}
	args = append(args, filepath.Join(s.dir, "data"))
	s.proc, err = Start("versitygw", filepath.Join(s.dir, "versitygw.log"), env, filepath.Join(Build(), "bin", "versitygw"), args...)
	if err != nil {
		return err
	}
	if err := s.proc.until(30*time.Second, func(ctx context.Context) error { return pingHTTP(ctx, s.Endpoint) }); err != nil {
		s.Kill()
		return err
	}
	return nil
}

// URL returns the server's endpoint.
func (s *S3) URL() string { return s.Endpoint }

// Log returns the file with what the server says.
func (s *S3) Log() string { return s.proc.Log }

// Kill stops the server at once.
func (s *S3) Kill() { s.proc.Kill() }

// Dir returns the folder that holds the objects of a bucket as plain files.
func (s *S3) Dir(bucket string) string { return filepath.Join(s.dir, "data", bucket) }

// MakeBucket creates a bucket on the S3 server at endpoint.
func MakeBucket(ctx context.Context, endpoint, bucket string) error {
	_, err := S3Client(endpoint).CreateBucket(ctx, &s3.CreateBucketInput{Bucket: &bucket})
	return err
}

// MakeLockBucket creates a bucket with Object Lock, which keeps versions.
func MakeLockBucket(ctx context.Context, endpoint, bucket string) error {
	_, err := S3Client(endpoint).CreateBucket(ctx, &s3.CreateBucketInput{Bucket: &bucket, ObjectLockEnabledForBucket: aws.Bool(true)})
	return err
}

// SetVersioning has a bucket keep versions, or suspends that.
func SetVersioning(ctx context.Context, endpoint, bucket string, on bool) error {
	status := types.BucketVersioningStatusSuspended
	if on {
		status = types.BucketVersioningStatusEnabled
	}
	_, err := S3Client(endpoint).PutBucketVersioning(ctx, &s3.PutBucketVersioningInput{
		Bucket: &bucket, VersioningConfiguration: &types.VersioningConfiguration{Status: status},
	})
	return err
}

// S3Client returns a client of the S3 server at endpoint that is not ours.
func S3Client(endpoint string) *s3.Client { return s3Client(endpoint, AccessKey, SecretKey) }

// S3ClientOf is S3Client for a user of [StartS3With].
func S3ClientOf(endpoint, user string) *s3.Client { return s3Client(endpoint, user, user+"-secret") }

func s3Client(endpoint, key, secret string) *s3.Client {
	return s3.New(s3.Options{
		Region: Region, BaseEndpoint: aws.String(endpoint), UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider(key, secret, ""),
	})
}

// BucketURL returns the URL by which the product knows a bucket.
func BucketURL(endpoint, bucket string) string {
	q := url.Values{"endpoint": {endpoint}, "region": {Region}, "path-style": {"true"}}
	return fmt.Sprintf("s3://%s?%s", bucket, q.Encode())
}

// pingHTTP is content with any answer.
func pingHTTP(ctx context.Context, endpoint string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, endpoint, nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	return res.Body.Close()
}
