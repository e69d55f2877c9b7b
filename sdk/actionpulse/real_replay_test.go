package actionpulse_test

import (
	"encoding/json"
	"testing"

	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/sdk/actionpulse"
)

func testReplays(t *testing.T, r *site) {
	sender, err := actionpulse.New(r.URL, r.Setup.BrowserToken)
	if err != nil {
		t.Fatal(err)
	}
	events := []json.RawMessage{[]byte(`{"type":4,"timestamp":1780221600000,"data":{"href":"/a b"}}`)}
	for i, want := range []api.ReplayResponse{{}, {Duplicate: true}, {Duplicate: true, Conflict: true}} {
		if i == 2 {
			events = append(events, []byte(`{}`))
		}
		chunk := api.ReplayRequest{SessionID: "s/1 ü", Chunk: 1, UserID: "ada", Events: events}
		if got, err := sender.Intake.SendReplay(t.Context(), chunk); err != nil || *got != want {
			t.Errorf("%d: %+v, %v", i, got, err)
		}
	}
	list, err := r.app.Replays.List(t.Context(), r.project, actionpulse.ListReplays{Person: "ada", HasErrors: new(false)})
	if err != nil || len(list.Items) != 1 || *list.Items[0].Person != "ada" || list.Items[0].Pages != 1 {
		t.Errorf("%+v, %v", list, err)
	}
	one, err := r.app.Replays.Get(t.Context(), r.project, "s/1 ü")
	if err != nil || len(one.Chunks) != 1 || len(one.Gaps) != 1 || one.GapCount != 1 {
		t.Errorf("%+v, %v", one, err)
	}
	content, err := r.app.Replays.Chunk(t.Context(), r.project, "s/1 ü", 1)
	if err != nil || string(content) != `[{"type":4,"timestamp":1780221600000,"data":{"href":"/a b"}}]` {
		t.Errorf("%s, %v", content, err)
	}
	if err := r.app.Replays.Delete(t.Context(), r.project, "s/1 ü"); err != nil {
		t.Error(err)
	}
	if e := asError(t, r.app.Replays.Delete(t.Context(), r.project, "s/1 ü")); e.Code != api.CodeNotFound {
		t.Errorf("%+v", e)
	}
}
