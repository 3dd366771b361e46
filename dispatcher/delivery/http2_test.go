package delivery

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"sync/atomic"
	"testing"
)

// Frames of HTTP/2 (RFC 9113), as far as an endpoint of a test needs them.
const (
	frameHeaders   = 1
	frameReset     = 3
	frameSettings  = 4
	frameGoAway    = 7
	flagEnd        = 0x5 // END_STREAM, END_HEADERS; ACK of SETTINGS is 0x1
	codeInternal   = 2
	codeRefused    = 7
	statusOKHeader = "\x88" // ":status: 200" of HPACK's static table
)

// initialWindow is the setting of a client that holds 64 KiB of a body at most
// (SETTINGS_INITIAL_WINDOW_SIZE, RFC 9113, 6.5.2).
var initialWindow = binary.BigEndian.AppendUint32([]byte{0, 4}, answerWindow)

func writeFrame(c io.Writer, kind, flags byte, stream uint32, payload []byte) {
	head := binary.BigEndian.AppendUint32(nil, uint32(len(payload))<<8|uint32(kind))
	head = append(head, flags)
	head = binary.BigEndian.AppendUint32(head, stream)
	c.Write(append(head, payload...))
}

func code(values ...uint32) []byte {
	var b []byte
	for _, v := range values {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	return b
}

// scriptHTTP2 plays an endpoint that answers each request, by its number over
// all connections from 0, as react says.
func (w *world) scriptHTTP2(i issued, react func(request int, c io.Writer, stream uint32)) *atomic.Int32 {
	w.t.Helper()
	l := tls.NewListener(w.listen(publicIP+":443"), &tls.Config{Certificates: []tls.Certificate{i.pair}, NextProtos: []string{"h2"}})
	requests := new(atomic.Int32)
	serve := func(c net.Conn) {
		defer c.Close()
		r := bufio.NewReader(c)
		if _, err := io.CopyN(io.Discard, r, int64(len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))); err != nil {
			return
		}
		writeFrame(c, frameSettings, 0, 0, nil)
		for first := true; ; first = false {
			var head [9]byte
			if _, err := io.ReadFull(r, head[:]); err != nil {
				return
			}
			size := int64(head[0])<<16 | int64(head[1])<<8 | int64(head[2])
			payload := make([]byte, size)
			io.ReadFull(r, payload)
			if first && !bytes.Contains(payload, initialWindow) {
				w.t.Errorf("the client's settings %x let an endpoint send more than we want to hold", payload)
			}
			if head[3] == frameHeaders {
				react(int(requests.Add(1))-1, c, binary.BigEndian.Uint32(head[5:]))
			}
		}
	}
	w.played.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			w.played.Go(func() { serve(c) })
		}
	})
	return requests
}

func TestHTTP2Unprocessed(t *testing.T) {
	ok := func(c io.Writer, stream uint32) { writeFrame(c, frameHeaders, flagEnd, stream, []byte(statusOKHeader)) }
	refuse := func(c io.Writer, stream uint32) { writeFrame(c, frameReset, 0, stream, code(codeRefused)) }
	for name, c := range map[string]struct {
		react    func(request int, c io.Writer, stream uint32)
		class    Class
		failure  Failure
		second   bool
		requests int32 // with the one before
		dials    int
	}{
		"refused once": {func(n int, c io.Writer, stream uint32) {
			if n == 1 {
				refuse(c, stream)
			} else {
				ok(c, stream)
			}
		}, ClassDelivered, FailureNone, true, 3, 2},
		"always refused": {func(n int, c io.Writer, stream uint32) {
			if n == 0 {
				ok(c, stream)
			} else {
				refuse(c, stream)
			}
		}, ClassFailed, FailureReset, true, 3, 2},
		"GOAWAY below the stream": {func(n int, c io.Writer, stream uint32) {
			if n == 1 {
				writeFrame(c, frameGoAway, 0, 0, code(stream-2, 0))
			} else {
				ok(c, stream)
			}
		}, ClassDelivered, FailureNone, true, 3, 2},
		"reset, maybe processed": {func(n int, c io.Writer, stream uint32) {
			if n == 1 {
				writeFrame(c, frameReset, 0, stream, code(codeInternal))
			} else {
				ok(c, stream)
			}
		}, ClassFailed, FailureReset, false, 2, 1},
		"GOAWAY above, then closed": {func(n int, c io.Writer, stream uint32) {
			if n == 1 {
				writeFrame(c, frameGoAway, 0, 0, code(stream, codeInternal))
				c.(net.Conn).Close()
			} else {
				ok(c, stream)
			}
		}, ClassFailed, FailureReset, false, 2, 1},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				i := issue(t, "hooks.example")
				requests := w.scriptHTTP2(i, c.react)
				e := secure(t, i)
				if r := w.sender.Send(t.Context(), attempt(e)); r.Class != ClassDelivered {
					t.Fatalf("%+v", r)
				}
				r := w.sender.Send(t.Context(), attempt(e))
				if r.Class != c.class || r.Failure != c.failure || r.SecondTry != c.second || requests.Load() != c.requests || w.dialed() != c.dials {
					t.Errorf("%+v, %d requests, %d connections", r, requests.Load(), w.dialed())
				}
			})
		})
	}
}
