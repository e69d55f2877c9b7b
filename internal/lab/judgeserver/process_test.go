package judgeserver_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/actionpulse/actionpulse/internal/lab/judgeserver"
)

// envServe makes the test's binary a server that answers with its process id.
const envServe = "JUDGESERVER_TEST_SERVE"

func TestMain(m *testing.M) {
	if address := os.Getenv(envServe); address != "" {
		panic(http.ListenAndServe(address, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, os.Getpid()) //nolint:errcheck // the test sees it
		})))
	}
	goleak.VerifyTestMain(m)
}

// freeAddress is one that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	return listener.Addr().String()
}

func get(t *testing.T, url string) (string, error) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer response.Body.Close() //nolint:errcheck // it has been read
	content, err := io.ReadAll(response.Body)
	return string(content), err
}

// TestProcess: a server is started, killed and started again, with what it has
// started itself, and in the end nobody is left.
func TestProcess(t *testing.T) {
	t.Parallel()
	address := freeAddress(t)
	url := "http://" + address
	// The shell stays and waits: killing it alone would leave the server.
	command := fmt.Sprintf("%s=%s '%s' -test.run=^$ & wait", envServe, address, os.Args[0])
	p, err := judgeserver.Start(t.Context(), command, url, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	first, err := get(t, url)
	if err != nil {
		t.Error(err)
	}
	if err := p.Restart(t.Context()); err != nil {
		t.Error(err)
	}
	second, err := get(t, url)
	if err != nil || second == first || second == "" {
		t.Errorf("process %s, then %s: %v", first, second, err)
	}
	for range 2 {
		if err := p.Kill(); err != nil {
			t.Error(err)
		}
	}
	if who, err := get(t, url); err == nil {
		t.Errorf("%s still answers", who)
	}
}

// TestProcessEnds: a server that ends by itself is not waited for.
func TestProcessEnds(t *testing.T) {
	t.Parallel()
	_, err := judgeserver.Start(t.Context(), "exit 3", "http://"+freeAddress(t), io.Discard)
	if err == nil || !strings.Contains(err.Error(), "ended by itself: exit status 3") {
		t.Errorf("got %v", err)
	}
}

// TestRestartBy: a command is run, and its failure is one of the restart.
func TestRestartBy(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.NotFoundHandler()}
	go server.Serve(listener) //nolint:errcheck // it ends with the test
	defer server.Close()      //nolint:errcheck // it ends with the test
	url := "http://" + listener.Addr().String()
	mark := filepath.Join(t.TempDir(), "restarted")
	if err := judgeserver.RestartBy("touch '"+mark+"'", url, io.Discard)(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(mark); err != nil {
		t.Error(err)
	}
	if err := judgeserver.RestartBy("exit 4", url, io.Discard)(t.Context()); err == nil || !strings.Contains(err.Error(), "exit status 4") {
		t.Errorf("got %v", err)
	}
}
