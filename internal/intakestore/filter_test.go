package intakestore

import (
	"math/rand/v2"
	"testing"
)

func TestFilterNeverForgetsAndIsRarelyWrong(t *testing.T) {
	const n = 200_000
	r := rand.New(rand.NewPCG(1, 2))
	f := newFilter(n)
	added := make([]uint64, n)
	for i := range added {
		added[i] = r.Uint64()
		f.add(added[i])
	}
	g, err := unmarshalFilter(f.marshal())
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range added {
		if !f.mayContain(h) || !g.mayContain(h) {
			t.Fatal("the filter forgot an id")
		}
	}
	wrong := 0
	for range n {
		if f.mayContain(r.Uint64()) {
			wrong++
		}
	}
	if rate := float64(wrong) / n; rate > 0.005 {
		t.Errorf("%.4f of unknown ids are answered perhaps", rate)
	}
	if _, err := unmarshalFilter([]byte{1}); err == nil {
		t.Error("a cut filter was read")
	}
}
