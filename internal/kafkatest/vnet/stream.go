package vnet

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

var errDeadline = os.ErrDeadlineExceeded

// stream is one direction of a connection: what was written and not yet read.
type stream struct {
	mu          sync.Mutex
	chunks      []chunk
	size        int
	readClosed  bool // the reader is gone: writing is EPIPE
	writeClosed bool // the writer is gone: EOF after the last chunk
	reset       bool // the writer reset the connection: no more chunks
	changed     chan struct{}
}

type chunk struct {
	data  []byte
	ready time.Time // when it arrives; zero is at once
}

func newStream() *stream { return &stream{changed: make(chan struct{})} }

// notify wakes everyone who waits on the stream. The caller holds the lock.
func (s *stream) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *stream) read(b []byte, by *deadline, state func() (pathState, <-chan struct{})) (int, error) {
	for {
		expired := by.wait()
		if by.passed() {
			return 0, errDeadline
		}
		way, healed := state()
		s.mu.Lock()
		changed := s.changed
		n, later, err := s.take(b, way.cut)
		s.mu.Unlock()
		if n > 0 || err != nil || len(b) == 0 {
			return n, err
		}
		var arrives <-chan time.Time
		if later > 0 {
			timer := time.NewTimer(later)
			defer timer.Stop()
			arrives = timer.C
		}
		select {
		case <-changed:
		case <-healed:
		case <-expired:
		case <-arrives:
		}
	}
}

// take reads what is there now. later is how long the next chunk still needs;
// nothing at all means: wait for a change.
func (s *stream) take(b []byte, cut bool) (n int, later time.Duration, err error) {
	switch {
	case s.readClosed:
		return 0, 0, net.ErrClosed
	case cut:
		return 0, 0, nil
	case s.reset:
		return 0, 0, syscall.ECONNRESET
	case len(s.chunks) == 0 && s.writeClosed:
		return 0, 0, io.EOF
	}
	for n < len(b) && len(s.chunks) > 0 {
		first := &s.chunks[0]
		if !first.ready.IsZero() {
			if later = time.Until(first.ready); later > 0 {
				break
			}
		}
		m := copy(b[n:], first.data)
		n += m
		s.size -= m
		if first.data = first.data[m:]; len(first.data) == 0 {
			s.chunks = s.chunks[1:]
		}
	}
	if n > 0 {
		s.notify()
	}
	return n, later, nil
}

func (s *stream) write(b []byte, by *deadline, delay time.Duration) (int, error) {
	var ready time.Time
	if delay > 0 {
		ready = time.Now().Add(delay)
	}
	total := 0
	for {
		expired := by.wait()
		if by.passed() {
			return total, errDeadline
		}
		s.mu.Lock()
		changed := s.changed
		switch {
		case s.writeClosed:
			s.mu.Unlock()
			return total, net.ErrClosed
		case s.readClosed:
			s.mu.Unlock()
			return total, syscall.EPIPE
		}
		if m := min(len(b), bufferBytes-s.size); m > 0 {
			s.chunks = append(s.chunks, chunk{append([]byte(nil), b[:m]...), ready})
			s.size += m
			total += m
			b = b[m:]
			s.notify()
		}
		s.mu.Unlock()
		if len(b) == 0 {
			return total, nil
		}
		select {
		case <-changed:
		case <-expired:
		}
	}
}

func (s *stream) closeRead() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readClosed = true
	s.notify()
}

func (s *stream) closeWrite(reset bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writeClosed = true
	if reset {
		s.reset, s.chunks, s.size = true, nil, 0
	}
	s.notify()
}
