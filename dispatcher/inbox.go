package dispatcher

import "sync"

// inbox is how everybody else speaks to the goroutine that owns a number's
// state: each message is work that this goroutine does. Posting never blocks;
// what may be posted is bounded by those who post (fetching is paused, requests
// have slots).
type inbox struct {
	mu       sync.Mutex
	messages []func()
	bell     chan struct{}
}

func newInbox() inbox { return inbox{bell: make(chan struct{}, 1)} }

func (b *inbox) post(f func()) {
	b.mu.Lock()
	b.messages = append(b.messages, f)
	b.mu.Unlock()
	b.wake()
}

// wake makes the goroutine take another turn.
func (b *inbox) wake() {
	select {
	case b.bell <- struct{}{}:
	default:
	}
}

func (b *inbox) take() []func() {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.messages
	b.messages = nil
	return m
}
