package devstack

import (
	"context"
	"errors"
	"fmt"
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

// A gateway is the S3 server while it runs, and the door before it.
type gateway struct {
	door   *door
	folder string // of the socket between them
	cancel context.CancelFunc
	done   chan struct{} // closed when the server has ended
	err    error         // why, after done
}

// startS3 starts the server on dir/s3 and makes sure of the bucket.
func startS3(ctx context.Context, dir string, port int, bucket string, told func(Call)) (*gateway, error) {
	g, err := startGateway(ctx, dir, port, told)
	if err == nil {
		err = g.ensureBucket(ctx, bucket)
	}
	if err != nil {
		return g, fmt.Errorf("s3: %w", err)
	}
	return g, nil
}

// startGateway returns the gateway even where it fails, as far as it has come.
func startGateway(ctx context.Context, dir string, port int, told func(Call)) (g *gateway, err error) {
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	g = &gateway{cancel: cancel, done: make(chan struct{})}
	// The path of a socket has 100 bytes or so at most: not a place below dir.
	if g.folder, err = os.MkdirTemp("", "devstack-"); err != nil {
		close(g.done)
		return g, err
	}
	socket := filepath.Join(g.folder, "s3")
	if g.door, err = openDoor(port, socket); err != nil {
		close(g.done)
		return g, err
	}
	backend, err := openBackend(dir)
	if err != nil {
		close(g.done)
		return g, err
	}
	listening := make(chan struct{})
	cfg := settings(socket, told, func() { close(listening) })
	go func() {
		defer close(g.done)
		g.err = embedgw.RunVersityGW(run, backend, cfg)
	}()
	select {
	case <-listening:
		g.door.serve()
		return g, nil
	case <-g.done:
		return g, g.err
	case <-ctx.Done():
		return g, ctx.Err()
	}
}

// settings are those of a small server that says nothing. It keeps
// connections: a client that had to open one for each object would run out of
// ports in a benchmark.
func settings(socket string, told func(Call), listening func()) *embedgw.Config {
	options := []s3api.Option{s3api.WithOnListen(listening)}
	if told != nil {
		options = append(options, s3api.WithMiddleware("/", observe(told)))
	}
	return &embedgw.Config{
		RootUserAccess: AccessKey, RootUserSecret: SecretKey, Region: Region,
		IAMService:     auth.NewIAMServiceSingle(auth.Account{Access: AccessKey, Secret: SecretKey, Role: auth.RoleAdmin}),
		Ports:          []string{socket},
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

// ensureBucket creates the bucket if it is not there.
func (g *gateway) ensureBucket(ctx context.Context, bucket string) error {
	client := s3.New(s3.Options{
		BaseEndpoint: aws.String("http://" + loopback(g.door.port())), Region: Region, UsePathStyle: true,
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

// stop ends the server and waits until it has. The door goes first: without
// connections the server has nothing to wait for.
func (g *gateway) stop() error {
	if g.door != nil {
		g.door.close()
	}
	g.cancel()
	<-g.done
	err := os.RemoveAll(g.folder)
	if errors.Is(g.err, context.Canceled) {
		return err
	}
	return errors.Join(g.err, err)
}
