package main

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/reenvio/reenvio/internal/kafkatest"
)

func TestDispatcherRefusesAWrongSetOfTopics(t *testing.T) {
	s := newClusterShell(t)
	s.run(t, "dispatcher", "--admin.listen=127.0.0.1:0").wantCode(t, exitFailed).wantErr(t, "webhooks.events is missing", "reenvio topics apply")
}

func TestDispatcherDeliversAndDrains(t *testing.T) {
	s := newClusterShell(t)
	s.environ = append(s.environ, "REENVIO_EGRESS__ALLOW=127.0.0.1", "REENVIO_EGRESS__ALLOW_HTTP=true", "REENVIO_KAFKA__INSTANCE_ID=one")
	s.run(t, "topics", "apply", "--yes").wantCode(t, exitOK)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	receiver := kafkatest.NewReceiver(t, listener, kafkatest.Always(http.StatusOK))
	created := s.run(t, "webhooks", "create", "--id", "crm", "--url", receiver.URL("crm"), "-o", "json").wantCode(t, exitOK).object(t)
	receiver.VerifyWith(t, "crm", created["secret"].(string))
	s.run(t, "send", "--webhook", "crm", "--id", "e1", "--data", "hello").wantCode(t, exitOK)

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan outcome, 1)
	go func() { ended <- s.runCtx(ctx, "dispatcher", "--admin.listen=127.0.0.1:0") }()
	var got kafkatest.Request
	if err := receiver.Await(t.Context(), func(r kafkatest.Request) bool { got = r; return true }); err != nil {
		t.Fatal(err)
	}
	if got.EventID != "e1" || string(got.Body) != "hello" || got.Signature != nil || !strings.HasPrefix(got.Header.Get("User-Agent"), "Reenvio/") {
		t.Errorf("got %+v", got)
	}
	s.run(t, "webhooks", "pause", "crm").wantCode(t, exitOK)
	s.run(t, "webhooks", "list").wantCode(t, exitOK).wantOut(t, "paused (manual)")
	s.run(t, "webhooks", "resume", "crm").wantCode(t, exitOK)
	stop()
	(<-ended).wantCode(t, exitOK).wantErr(t, `"msg":"attempt"`, `"event":"e1"`)
}
