package torture_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// diskVariable tells a test that runs itself again where to mount its disk.
const diskVariable = "TORTURE_DISK"

// diskSize leaves room for the files that the intake store sets aside in
// advance, about 70 MB each.
const diskSize = 400 << 20

// TestFullDisk runs itself again as root of namespaces of its own, where it
// may mount a small disk that nobody else sees.
func TestFullDisk(t *testing.T) {
	if os.Getenv(diskVariable) != "" {
		t.Run("guarded", func(t *testing.T) { onSmallDisk(t, fillGuarded) })
		t.Run("unguarded", func(t *testing.T) { onSmallDisk(t, fillUnguarded) })
		return
	}
	binary, dir := buildBinary(t), workFolder(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), self, "-test.run=^TestFullDisk$", "-test.v", "-test.timeout=30m",
		fmt.Sprintf("-seed=%d", *seedFlag), fmt.Sprintf("-duration=%s", *durationFlag))
	command.Env = environment(diskVariable+"="+dir, binaryVariable+"="+binary)
	command.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	command.Stdout, command.Stderr = t.Output(), t.Output()
	err = command.Run()
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EINVAL) {
		t.Fatalf("this test mounts a small disk in user and mount namespaces of its own, which this system forbids (%v): allow unprivileged user namespaces, or run the container with them", err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// onSmallDisk runs fn with a data folder on a disk of its own and compares
// what is stored at the end.
func onSmallDisk(t *testing.T, fn func(*torture, filler)) {
	dir := filepath.Join(os.Getenv(diskVariable), filepath.Base(t.Name()))
	disk := filepath.Join(dir, "disk")
	if err := os.MkdirAll(disk, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, fmt.Sprintf("size=%d,mode=0700", diskSize)); err != nil {
		t.Fatalf("mount a small disk: %v", err)
	}
	t.Cleanup(func() {
		if t.Failed() { // the disk goes away with the namespace
			if err := os.CopyFS(filepath.Join(dir, "kept"), os.DirFS(disk)); err != nil {
				t.Error(err)
			}
		}
		if err := syscall.Unmount(disk, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	x := newTorture(t, dir, filepath.Join(disk, "data"))
	fn(x, filler{t, disk, filepath.Join(disk, "filler")})
	x.finish()
}

// filler fills a disk with a file.
type filler struct {
	t          *testing.T
	disk, path string
}

// fill leaves a number of bytes free.
func (f filler) fill(free uint64) {
	f.t.Helper()
	file, err := os.OpenFile(f.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		f.t.Fatal(err)
	}
	chunk := make([]byte, 64<<10)
	for {
		now := f.free()
		if now <= free {
			break
		}
		if _, err := file.Write(chunk[:min(uint64(len(chunk)), now-free)]); errors.Is(err, syscall.ENOSPC) {
			break
		} else if err != nil {
			f.t.Fatal(err)
		}
	}
	if err := file.Close(); err != nil {
		f.t.Fatal(err)
	}
}

func (f filler) free() uint64 {
	f.t.Helper()
	var st syscall.Statfs_t
	if err := syscall.Statfs(f.disk, &st); err != nil {
		f.t.Fatal(err)
	}
	return st.Bavail * uint64(st.Bsize)
}

// remove gives the space back.
func (f filler) remove() {
	f.t.Helper()
	if err := os.Remove(f.path); err != nil {
		f.t.Fatal(err)
	}
}

// cycles is how often the disk is filled: more often in a long run.
func cycles() int { return 1 + int(*durationFlag/(2*time.Minute)) }

const guard = "--storage.min_free_bytes=64MiB"

// fillGuarded: near the end of the disk intake is refused, and goes on by
// itself once there is space.
func fillGuarded(x *torture, f filler) {
	x.start(guard)
	x.send(4)
	for range cycles() {
		x.traffic(30)
		f.fill(48 << 20)
		x.refusals("500 internal", 12)
		if ready := x.ready(); ready != http.StatusServiceUnavailable {
			x.Fatalf("readyz says %d while intake is refused", ready)
		}
		f.remove()
		x.traffic(10)
		x.probe()
		x.rounds++
	}
}

// refusals waits until the server has refused n more requests for a reason.
func (x *torture) refusals(why string, n int) {
	x.Helper()
	x.await(fmt.Sprintf("%d refusals with %s", n, why), func(before, now counts) bool {
		return now.refused[why] >= before.refused[why]+n
	})
}

func (x *torture) ready() int {
	x.Helper()
	request, err := http.NewRequestWithContext(x.Context(), http.MethodGet, "http://"+x.address+"/readyz", http.NoBody)
	if err != nil {
		x.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		x.Fatal(err)
	}
	if err := response.Body.Close(); err != nil {
		x.Fatal(err)
	}
	return response.StatusCode
}

// fillUnguarded: without the guard the disk gets full and the process may die.
// Nothing acknowledged is lost.
func fillUnguarded(x *torture, f filler) {
	x.start("--storage.min_free_bytes=0")
	x.send(4)
	for range 1 + cycles() {
		x.traffic(30)
		f.fill(uint64(x.rand.IntN(4 << 20)))
		ctx, cancel := context.WithTimeout(x.Context(), 3*time.Second)
		select {
		case <-x.server.exited:
			x.Logf("on a full disk the server ended: %s", x.server.end(x.T))
		case <-ctx.Done():
			c, _ := x.model.progress()
			x.Logf("on a full disk, with %d bytes free, the server went on: %+v", f.free(), c)
		}
		cancel()
		f.remove()
		if !x.server.ended() {
			x.server.kill(x.T)
		}
		x.start("--storage.min_free_bytes=0")
		x.rounds++
	}
	x.traffic(1)
}
