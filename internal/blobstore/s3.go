package blobstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// S3Options say where the bucket is and who may use it.
type S3Options struct {
	// Endpoint is http or https with a host, and nothing behind it.
	Endpoint string
	// Region may be empty where the service has none.
	Region string
	Bucket string
	// Prefix begins the key of every blob, without a slash at either end; it may
	// be empty.
	Prefix string
	// AccessKey and SecretKey, if they are empty, come from where programs of
	// AWS look for them: the environment, the file of credentials, the machine.
	AccessKey, SecretKey string
}

const (
	// requestTimeout limits one request, which moves some megabytes at most, with
	// its repeats.
	requestTimeout = 30 * time.Second
	// requestAttempts is how often one is sent: enough for an object store that
	// asks to be slower, or a connection that was closed; a sender waits, and
	// repeats it anyway.
	requestAttempts = 3
)

// S3 keeps blobs as objects of a bucket. An object store answers a PUT when the
// object is safe, and shows objects whole.
type S3 struct {
	client         *minio.Client
	bucket, prefix string
	// connections are those that are kept open.
	connections interface{ CloseIdleConnections() }
}

var _ Store = (*S3)(nil)

// OpenS3 makes the client of a bucket. It sends nothing.
func OpenS3(o S3Options) (*S3, error) {
	host, secure := strings.CutPrefix(o.Endpoint, "https://")
	if !secure {
		host = strings.TrimPrefix(host, "http://")
	}
	transport, err := minio.DefaultTransport(secure)
	if err != nil {
		return nil, fmt.Errorf("connect to the object store: %w", err)
	}
	client, err := minio.New(host, &minio.Options{
		Creds: credentialsOf(o), Secure: secure, Region: o.Region, Transport: transport, MaxRetries: requestAttempts,
	})
	if err != nil {
		return nil, fmt.Errorf("connect to the object store: %w", err)
	}
	client.SetAppInfo("actionpulse", "1")
	prefix := strings.Trim(o.Prefix, "/")
	if prefix != "" {
		prefix += "/"
	}
	return &S3{client: client, bucket: o.Bucket, prefix: prefix, connections: transport}, nil
}

func credentialsOf(o S3Options) *credentials.Credentials {
	if o.AccessKey != "" {
		return credentials.NewStaticV4(o.AccessKey, o.SecretKey, "")
	}
	return credentials.NewChainCredentials([]credentials.Provider{
		&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}, &credentials.IAM{},
	})
}

// Check asks whether the bucket is there and may be used, so that a wrong
// setting is known at the start.
func (s *S3) Check(ctx context.Context) error {
	if keys, err := s.client.GetCreds(); err == nil && keys.SignerType.IsAnonymous() {
		return fmt.Errorf("there are no keys for the bucket %s, neither in the settings nor where AWS's own programs look for them", s.bucket)
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	there, err := s.client.BucketExists(ctx, s.bucket)
	if err == nil && there {
		return nil
	}
	why := s.refusal(ctx)
	switch {
	case why != nil && why.Code != minio.NoSuchBucket:
		return fmt.Errorf("look for the bucket %s: %s (%s)", s.bucket, why.Message, why.Code)
	case err != nil:
		return fmt.Errorf("look for the bucket %s: %w", s.bucket, err)
	default:
		return fmt.Errorf("there is no bucket %s", s.bucket)
	}
}

// refusal asks for a blob that is not there and returns why the object store
// refuses that, nil if it does not: unlike the answer to HEAD, this one has a
// body, with the reason.
func (s *S3) refusal(ctx context.Context) *minio.ErrorResponse {
	_, err := s.Get(ctx, "none")
	if why, ok := errors.AsType[minio.ErrorResponse](err); ok {
		return &why
	}
	return nil
}

// Put implements Store.
func (s *S3) Put(ctx context.Context, name string, content []byte) error {
	if err := checkName(name); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_, err := s.client.PutObject(ctx, s.bucket, s.prefix+name, bytes.NewReader(content), int64(len(content)),
		minio.PutObjectOptions{ContentType: "application/zstd", DisableMultipart: true, SendContentMd5: true})
	if err != nil {
		return fmt.Errorf("write a blob: %w", err)
	}
	return nil
}

// Get implements Store.
func (s *S3) Get(ctx context.Context, name string) (content []byte, err error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	object, err := s.client.GetObject(ctx, s.bucket, s.prefix+name, minio.GetObjectOptions{})
	if err != nil {
		return nil, fmt.Errorf("open a blob: %w", err)
	}
	defer func() { err = errors.Join(err, object.Close()) }()
	content, err = readAll(object)
	if refusal, ok := errors.AsType[minio.ErrorResponse](err); ok && refusal.Code == minio.NoSuchKey {
		return nil, fmt.Errorf("open a blob: %w", fs.ErrNotExist)
	}
	return content, err
}

// Delete implements Store.
func (s *S3) Delete(ctx context.Context, name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if err := s.client.RemoveObject(ctx, s.bucket, s.prefix+name, minio.RemoveObjectOptions{}); err != nil {
		return fmt.Errorf("delete a blob: %w", err)
	}
	return nil
}

// Close implements Store.
func (s *S3) Close() error {
	s.connections.CloseIdleConnections()
	return nil
}
