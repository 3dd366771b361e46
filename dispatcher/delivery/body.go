package delivery

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

const (
	// maxAnswerBody is how much of an answer's body is read so that its connection
	// can be used again; beyond that a new connection is cheaper.
	maxAnswerBody = 64 << 10
	// answerGrace is how long the body of an answer may take after its header. The
	// outcome is certain by then, and an endless body must not hold a slot until
	// the endpoint's timeout; a body that needs more round trips than fit in here
	// costs its connection, nothing else.
	answerGrace = 500 * time.Millisecond
	// excerptWindow is what is kept of the body for the excerpt, before blotting
	// out and cleaning make it shorter.
	excerptWindow = 4 << 10
)

var readBuffers = sync.Pool{New: func() any { return new([excerptWindow]byte) }}

// finish reads the body of an answer within bounds and closes it. With keep it
// returns the beginning, and whether there is more. Nothing that happens here is
// an error: the header has decided.
func finish(answer *http.Response, cancel context.CancelFunc, keep bool) (head []byte, more bool) {
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusSwitchingProtocols {
		return nil, false // its body is the connection: a read would wait past every deadline
	}
	if answer.Body == http.NoBody {
		return nil, false
	}
	defer time.AfterFunc(answerGrace, cancel).Stop()
	buffer := readBuffers.Get().(*[excerptWindow]byte)
	defer readBuffers.Put(buffer)
	for total := 0; total < maxAnswerBody; {
		n, err := answer.Body.Read(buffer[:])
		if keep && len(head) < excerptWindow {
			head = append(head, buffer[:min(n, excerptWindow-len(head))]...)
		}
		total += n
		if err != nil {
			return head, !errors.Is(err, io.EOF) || total > len(head)
		}
	}
	return head, true
}
