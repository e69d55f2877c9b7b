package config

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// BlobURL says where blobs are kept: empty is a folder.
type BlobURL string

// Secret is a text that prints, logs and marshals as nothing of it; string(s)
// is the whole.
type Secret string

// String keeps the secret out of what is printed.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return redacted
}

// GoString keeps it out of %#v.
func (s Secret) GoString() string { return strconv.Quote(s.String()) }

// LogValue keeps it out of logs.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText keeps it out of JSON.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// S3 is a bucket of an object store.
type S3 struct {
	// Endpoint is http or https with a host.
	Endpoint, Region, Bucket, Prefix string
	// AccessKey and SecretKey are both empty or both set.
	AccessKey string
	SecretKey Secret
}

// defaultRegion is the region where neither the address nor the environment
// names one.
const defaultRegion = "us-east-1"

var (
	buckets  = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
	prefixes = regexp.MustCompile(`^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*$`)
)

// S3 returns the bucket of the settings, nil if blobs are kept in a folder. The
// error says which setting is at fault.
func (r *Replay) S3() (*S3, error) {
	if (r.AccessKey == "") != (r.SecretKey == "") {
		name, other := "replay.access_key", "replay.secret_key"
		if r.AccessKey == "" {
			name, other = other, name
		}
		return nil, wrong(name, "must be set together with %s, or both left out", other)
	}
	if r.Blobs == "" {
		return nil, nil
	}
	s, err := r.Blobs.s3()
	if err != nil {
		return nil, wrong("replay.blobs", "%v", err)
	}
	s.AccessKey, s.SecretKey = r.AccessKey, r.SecretKey
	return s, nil
}

func (u BlobURL) s3() (*S3, error) {
	at, err := url.Parse(string(u))
	if err != nil || at.Scheme != "s3" || at.User != nil || at.Fragment != "" || !buckets.MatchString(at.Host) {
		return nil, errors.New("must be empty or of the form s3://bucket/prefix?endpoint=https://host&region=name")
	}
	query, err := url.ParseQuery(at.RawQuery)
	if err != nil {
		return nil, errors.New("the parameters are malformed")
	}
	for name, values := range query {
		if !slices.Contains([]string{"endpoint", "region"}, name) || len(values) > 1 {
			return nil, fmt.Errorf("takes endpoint and region, each once, and not %q", name)
		}
	}
	s := &S3{
		Bucket: at.Host, Prefix: strings.Trim(at.Path, "/"),
		Region: cmp.Or(query.Get("region"), os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"), defaultRegion),
	}
	if s.Prefix != "" && !prefixes.MatchString(s.Prefix) {
		return nil, errors.New("the prefix may hold letters, digits and . _ - in its parts")
	}
	s.Endpoint, err = endpointOf(cmp.Or(query.Get("endpoint"), "https://s3."+s.Region+".amazonaws.com"))
	return s, err
}

// endpointOf is https unless it says http, and has nothing behind the host.
func endpointOf(text string) (string, error) {
	if !strings.Contains(text, "://") {
		text = "https://" + text
	}
	at, err := url.Parse(text)
	if err != nil || (at.Scheme != "http" && at.Scheme != "https") || at.Host == "" || at.User != nil || strings.Trim(at.Path, "/") != "" || at.RawQuery != "" {
		return "", errors.New("the endpoint must be http or https with a host, and nothing behind it")
	}
	return at.Scheme + "://" + at.Host, nil
}
