package retry

import (
	"crypto/sha256"
	"strconv"
	"testing"
	"time"
)

// TestLanesForget: nothing is kept of a lane in which all is well, and not more
// than maxIdleLanes of those that nobody uses, the latest.
func TestLanesForget(t *testing.T) {
	t.Parallel()
	var lanes Lanes
	now := time.Now()
	id := func(n int) laneID { return sha256.Sum256([]byte(strconv.Itoa(n))) }
	fail := func(n int, rest time.Duration) {
		(&pass{lanes: &lanes, id: id(n)}).failed(now, func(int) time.Duration { return rest })
	}
	fail(1, time.Second)
	at, _ := lanes.join(id(1))
	(&pass{lanes: &lanes, id: id(1), lane: at}).succeeded()
	if len(lanes.narrow) != 0 {
		t.Errorf("%d lanes are kept after a success", len(lanes.narrow))
	}
	fail(0, time.Hour)
	lanes.join(id(0))
	for n := range maxIdleLanes + 99 {
		fail(n+1, time.Hour+time.Duration(n))
	}
	if len(lanes.narrow) != maxIdleLanes || lanes.narrow[id(0)] == nil || lanes.narrow[id(maxIdleLanes+99)] == nil {
		t.Errorf("%d lanes are kept", len(lanes.narrow))
	}
	now = now.Add(2 * time.Hour)
	fail(-1, time.Second)
	if len(lanes.narrow) != 2 {
		t.Errorf("%d lanes are kept when their time is over", len(lanes.narrow))
	}
}

// TestLanesWithdraw: a turn that comes to one who is leaving is the next one's.
func TestLanesWithdraw(t *testing.T) {
	t.Parallel()
	var lanes Lanes
	id := laneID{1}
	(&pass{lanes: &lanes, id: id}).failed(time.Now(), func(int) time.Duration { return 0 })
	at, turn := lanes.join(id)
	if turn != nil {
		t.Fatal("the first has to wait")
	}
	_, leaving := lanes.join(id)
	_, next := lanes.join(id)
	(&pass{lanes: &lanes, id: id, lane: at}).left()
	lanes.withdraw(at, leaving)
	if len(next) != 1 || !<-next {
		t.Error("the next one has no turn")
	}
	(&pass{lanes: &lanes, id: id, lane: at}).left()
	if at.taken {
		t.Error("the lane is taken by nobody")
	}
}

// TestRenewalsForget: of tokens that are not used any more, a bounded number is
// remembered; one that is used is not forgotten.
func TestRenewalsForget(t *testing.T) {
	t.Parallel()
	var r renewals
	end := func(rejected, token string) {
		r.end(sha256.Sum256([]byte(rejected)), &renewing{token: token})
	}
	end("first", "other")
	for n := range 2 * maxRenewals {
		end(strconv.Itoa(n), "x"+strconv.Itoa(n))
		if r.current("first") != "other" {
			t.Fatalf("forgotten after %d", n)
		}
	}
	if len(r.known) != maxRenewals || r.current("0") != "0" {
		t.Errorf("%d tokens are kept", len(r.known))
	}
}
