package config

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBlobAddresses(t *testing.T) {
	t.Setenv("AWS_REGION", "")
	t.Setenv("AWS_DEFAULT_REGION", "")
	for text, want := range map[string]*S3{
		"":             nil,
		"s3://replays": {Bucket: "replays", Region: "us-east-1", Endpoint: "https://s3.us-east-1.amazonaws.com"},
		"s3://my.bucket/some/where/?region=eu-west-1":   {Bucket: "my.bucket", Prefix: "some/where", Region: "eu-west-1", Endpoint: "https://s3.eu-west-1.amazonaws.com"},
		"s3://replays/x?endpoint=http://127.0.0.1:9000": {Bucket: "replays", Prefix: "x", Region: "us-east-1", Endpoint: "http://127.0.0.1:9000"},
		"s3://replays?endpoint=minio.internal:9000/":    {Bucket: "replays", Region: "us-east-1", Endpoint: "https://minio.internal:9000"},
	} {
		got, err := (&Replay{Blobs: BlobURL(text)}).S3()
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", text, err, diff)
		}
	}
	for _, text := range []string{
		"replays", "/var/replays", "file:///x", "s3://", "s3://A", "s3://user:secret@replays", "s3://replays?endpint=x", "s3://replays?region=a&region=b",
		"s3://replays/../x y", "s3://replays?endpoint=ftp://x", "s3://replays?endpoint=http://x/path", "s3://replays?%zz",
	} {
		if got, err := (&Replay{Blobs: BlobURL(text)}).S3(); err == nil || !strings.HasPrefix(err.Error(), "replay.blobs: ") {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
}

func TestBlobSettings(t *testing.T) {
	t.Setenv("ACTIONPULSE_REPLAY_BLOBS", "s3://replays?region=eu-west-1")
	t.Setenv("ACTIONPULSE_REPLAY_SECRET_KEY", "hunter2")
	if _, _, err := parse(t, "--data", t.TempDir()); err == nil || !strings.Contains(err.Error(), "replay.access_key") {
		t.Errorf("half of the keys: %v", err)
	}
	c, report, err := parse(t, "--data", t.TempDir(), "--replay.access_key", "id")
	if err != nil {
		t.Fatal(err)
	}
	s, err := c.Replay.S3()
	if err != nil || s.AccessKey != "id" || string(s.SecretKey) != "hunter2" {
		t.Errorf("%v", err)
	}
	if text := fmt.Sprintf("%v %+v %#v %v", c, c.Replay, s, report); strings.Contains(text, "hunter2") {
		t.Errorf("the secret is shown: %s", text)
	}
	t.Setenv("AWS_REGION", "eu-north-1")
	if s, err := (&Replay{Blobs: "s3://replays"}).S3(); err != nil || s.Region != "eu-north-1" {
		t.Errorf("%+v, %v", s, err)
	}
}
