package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// fetcher polls the topics of all owned numbers with a direct client, and hands
// each record to the current life of its number.
//
// Membership and fetching are two clients on purpose. A group client that fetches
// stops polling for all numbers while one is being given up (BlockRebalanceOnPoll,
// without which a poll can carry records across a rebalance): a slow endpoint's
// drain would hold everybody up. It also begins at the committed offset alone,
// where a number begins at the offset and the set of what is done beyond it.
type fetcher struct {
	d              *Dispatcher
	quick, patient *kgo.Client // see turns.go

	mu         sync.Mutex
	cl         *kgo.Client // the one whose turn it is
	quickUntil time.Time
	sinks      map[int32]*sink
	polls      uint64
	begun      *sync.Cond // a poll has begun
	stop       context.CancelFunc
	stopped    bool
}

// sink is who gets the records of a number, and where each of its topics is fetched on.
type sink struct {
	n    *number
	next map[string]int64
}

func newFetcher(d *Dispatcher, quick, patient *kgo.Client) *fetcher {
	f := &fetcher{d: d, quick: quick, patient: patient, cl: quick, sinks: map[int32]*sink{}}
	f.begun = sync.NewCond(&f.mu)
	return f
}

// close ends polling for good.
func (f *fetcher) close() {
	f.quick.Close()
	f.patient.Close()
}

// add begins fetching for n from the given offsets, by topic.
func (f *fetcher) add(n *number, from map[string]int64) {
	f.mu.Lock()
	f.hurryLocked() // before the barrier: the poll that begins then is the quick client's
	f.mu.Unlock()
	f.barrier()
	f.mu.Lock()
	defer f.mu.Unlock()
	if n.ctx.Err() != nil {
		return
	}
	s := &sink{n: n, next: maps.Clone(from)}
	f.sinks[n.p] = s
	f.cl.AddConsumePartitions(s.offsets(map[string]map[int32]kgo.Offset{}))
}

// offsets adds where the number is fetched on to what kgo begins with.
func (s *sink) offsets(all map[string]map[int32]kgo.Offset) map[string]map[int32]kgo.Offset {
	for topic, at := range s.next {
		if all[topic] == nil {
			all[topic] = map[int32]kgo.Offset{}
		}
		all[topic][s.n.p] = kgo.NewOffset().At(at)
	}
	return all
}

// paused: whether fetching of one of its topics is paused.
func (s *sink) paused(topic string) bool {
	stream := s.n.streams[topic]
	return stream != nil && stream.paused.Load()
}

// barrier returns when a poll has begun after the call. A poll that was under way
// may hold records of an earlier life of a number; it has handed them over, to
// nobody, before a new life begins to listen.
func (f *fetcher) barrier() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stop != nil {
		f.stop()
	}
	for polls := f.polls; f.polls == polls && !f.stopped; {
		f.begun.Wait()
	}
}

// remove stops fetching for n. Records that a poll holds are dropped.
func (f *fetcher) remove(n *number) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := f.sinks[n.p]; s != nil && s.n == n {
		delete(f.sinks, n.p)
		f.dropLocked(s)
	}
}

// dropLocked stops the client whose turn it is from fetching for sinks.
func (f *fetcher) dropLocked(sinks ...*sink) {
	gone := map[string][]int32{}
	for _, s := range sinks {
		for topic := range s.next {
			gone[topic] = append(gone[topic], s.n.p)
		}
	}
	f.cl.RemoveConsumePartitions(gone)
	f.cl.ResumeFetchPartitions(gone) // kgo keeps pauses beyond a removal
}

// pauseLocked stops fetching one topic of n, release goes on with it.
func (f *fetcher) pauseLocked(n *number, s *stream) {
	s.paused.Store(true)
	f.cl.PauseFetchPartitions(map[string][]int32{s.topic: {n.p}})
	f.hurryLocked()
}

func (f *fetcher) release(n *number, s *stream) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if sink := f.sinks[n.p]; sink != nil && sink.n == n && s.paused.CompareAndSwap(true, false) {
		f.cl.ResumeFetchPartitions(map[string][]int32{s.topic: {n.p}})
	}
}

func (f *fetcher) run(ctx context.Context) {
	defer func() {
		f.mu.Lock()
		f.stopped = true
		f.begun.Broadcast()
		f.mu.Unlock()
	}()
	for ctx.Err() == nil {
		poll, stop := context.WithCancel(ctx)
		f.mu.Lock()
		turn := time.AfterFunc(f.takeTurnLocked(time.Now()), stop)
		cl := f.cl
		f.stop = stop
		f.polls++
		f.begun.Broadcast()
		f.mu.Unlock()
		fetches := cl.PollRecords(poll, 10_000)
		turn.Stop()
		stop()
		f.route(fetches)
	}
}

func (f *fetcher) route(fetches kgo.Fetches) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fetches.EachPartition(func(p kgo.FetchTopicPartition) {
		s := f.sinks[p.Partition]
		if p.Err != nil {
			f.complain(p.Topic, p.Partition, p.Err)
		}
		if s == nil || len(p.Records) == 0 {
			return
		}
		n := s.n
		s.next[p.Topic] = p.Records[len(p.Records)-1].Offset + 1
		stream := n.streams[p.Topic]
		if stream == nil {
			n.inbox.post(func() { n.endpointRecords(n.d.now(), p.Records) })
			return
		}
		// Paused first: the number, which may take all of it in at once, is who releases.
		if stream.arrives(p.Records) && !stream.paused.Load() {
			f.pauseLocked(n, stream)
		}
		n.inbox.post(func() { stream.fetched(p.Records) })
	})
}

func (f *fetcher) complain(topic string, partition int32, err error) {
	var loss *kgo.ErrDataLoss
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, kgo.ErrClientClosed):
	case errors.As(err, &loss):
		f.d.log.Error("records are gone before they were read: retention has taken them, or the log was truncated",
			"topic", topic, "number", partition, "error", err)
	default:
		f.d.log.Warn("fetching failed, trying again", "partition", fmt.Sprintf("%s/%d", topic, partition), "error", err)
	}
}
