package devstack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/gofiber/fiber/v3"
	"github.com/versity/versitygw/auth"
	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
	"github.com/versity/versitygw/s3api"
)

// A gateway is the S3 server while it runs.
type gateway struct {
	port   int
	cancel context.CancelFunc
	done   chan struct{} // closed when it has ended
	err    error         // why, after done
}

// startS3 starts the server on dir/s3 and makes sure of the bucket. A free
// port can be snatched between the look and the server's own listen, so where
// any port will do it tries a few.
func startS3(ctx context.Context, dir string, port int, bucket string, told func(Call)) (*gateway, error) {
	tries := 1
	if port == 0 {
		tries = 5
	}
	var err error
	for range tries {
		var g *gateway
		if g, err = startGateway(ctx, dir, port, told); err == nil {
			return g, g.ensureBucket(ctx, bucket)
		}
	}
	return nil, fmt.Errorf("s3: %w", err)
}

func startGateway(ctx context.Context, dir string, port int, told func(Call)) (*gateway, error) {
	port, err := claim(port)
	if err != nil {
		return nil, err
	}
	backend, err := openBackend(dir)
	if err != nil {
		return nil, err
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	g := &gateway{port: port, cancel: cancel, done: make(chan struct{})}
	listening := make(chan struct{})
	cfg := settings(port, told, func() { close(listening) })
	go func() {
		defer close(g.done)
		g.err = embedgw.RunVersityGW(run, backend, cfg)
	}()
	select {
	case <-listening:
		return g, nil
	case <-g.done:
		cancel()
		return nil, taken(g.err)
	case <-ctx.Done():
		return nil, errors.Join(ctx.Err(), g.stop())
	}
}

// settings are those of a small server that says nothing. It keeps
// connections: a client that had to open one for each object would run out of
// ports in a benchmark.
func settings(port int, told func(Call), listening func()) *embedgw.Config {
	options := []s3api.Option{s3api.WithOnListen(listening)}
	if told != nil {
		options = append(options, s3api.WithMiddleware("/", observe(told)))
	}
	return &embedgw.Config{
		RootUserAccess: AccessKey, RootUserSecret: SecretKey, Region: Region,
		IAMService:     auth.NewIAMServiceSingle(auth.Account{Access: AccessKey, Secret: SecretKey, Role: auth.RoleAdmin}),
		Ports:          []string{loopback(port)},
		MaxConnections: 4096, MaxRequests: 4096, MultipartMaxParts: 10000,
		KeepAlive: true, Quiet: true,
		S3Options: options,
	}
}

// observe tells of each request. The server reuses the memory of a request, so
// what is told are copies.
func observe(told func(Call)) fiber.Handler {
	return func(c fiber.Ctx) error {
		told(Call{Method: strings.Clone(c.Method()), Path: strings.Clone(c.Path()), Query: string(c.Request().URI().QueryString())})
		return c.Next()
	}
}

// openBackend opens dir/s3. Attributes of objects (ETag, content type) go with
// the files where the file system has extended attributes, else beside them.
func openBackend(dir string) (*posix.Posix, error) {
	root := filepath.Join(dir, "s3")
	o := posix.PosixOpts{CopyObjectThreshold: 5 << 30}
	if err := (meta.XattrMeta{}).Test(root); err == nil {
		return posix.New(root, meta.XattrMeta{}, o)
	}
	side := filepath.Join(dir, "s3meta")
	if err := os.MkdirAll(side, 0o755); err != nil {
		return nil, err
	}
	attributes, err := meta.NewSideCar(side)
	if err != nil {
		return nil, err
	}
	return posix.New(root, attributes, o)
}

// claim returns the port, or any free one for 0, if it can be bound now.
func claim(port int) (int, error) {
	l, err := listen("tcp", loopback(port))
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// taken recognises the server's own failure to bind.
func taken(err error) error {
	if err != nil && strings.Contains(err.Error(), "address already in use") {
		return fmt.Errorf("%w: %v", ErrPortTaken, err)
	}
	return err
}

// ensureBucket creates the bucket if it is not there.
func (g *gateway) ensureBucket(ctx context.Context, bucket string) error {
	client := s3.New(s3.Options{
		BaseEndpoint: aws.String("http://" + loopback(g.port)), Region: Region, UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider(AccessKey, SecretKey, ""),
	})
	_, err := client.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: &bucket})
	var owned *types.BucketAlreadyOwnedByYou
	var exists *types.BucketAlreadyExists
	if err == nil || errors.As(err, &owned) || errors.As(err, &exists) {
		return nil
	}
	return fmt.Errorf("s3: create bucket %s: %w", bucket, err)
}

// stop ends the server and waits until it has.
func (g *gateway) stop() error {
	g.cancel()
	<-g.done
	if errors.Is(g.err, context.Canceled) {
		return nil
	}
	return g.err
}
