package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/kafka"
	"github.com/reenvio/reenvio/internal/record"
)

type txnOutcome string

const (
	outcomeCommitted txnOutcome = "committed"
	outcomeAborted   txnOutcome = "aborted"
)

// transactor writes batches, one Kafka transaction each, under a transactional
// id that is the instance's own and stable: a restart aborts what its dead
// predecessor left open at once (KIP-98).
//
// kgo's GroupTransactSession does not fit: it commits all that was polled, and
// aborts on any revoke. So the offsets are added and committed by hand (KIP-447).
//
// A transaction has three bad ends:
//
//   - aborted: its records are written again in the next one;
//   - unknown: the answer to its end is lost. It may have been committed, and
//     writing the records again would double every chain in it;
//   - fenced: somebody took our transactional id, or the coordinator timed it out.
//
// The last two are settled alike: a new client with the same id makes the
// coordinator finish or abort whatever is open, and then the offsets that are
// committed for a number still ours tell whether our cycle is in.
type transactor struct {
	d        *Dispatcher
	id       string
	client   *kgo.Client // nil: must be made anew
	producer producer    // of the transaction that is open
	fenced   int         // times in a row that a young transaction of ours was fenced
	wary     bool        // a record was refused for its content, and which is not known
	stuck    bool        // a dead letter was refused that has no lesser form
}

func newTransactor(d *Dispatcher) *transactor {
	return &transactor{d: d, id: transactionalID(d.cfg.Group, d.instance)}
}

func transactionalID(group, instance string) string { return group + "-" + instance }

// connect makes a client with our transactional id and fences whoever had it.
func (t *transactor) connect(ctx context.Context) error {
	if t.client != nil {
		return nil
	}
	cl, err := t.d.newProducer(t.id)
	if err != nil {
		return fmt.Errorf("making the transactional client: %w", err)
	}
	if _, _, err := cl.ProducerID(ctx); err != nil {
		cl.Close()
		return fmt.Errorf("taking the transactional id %q: %w", t.id, err)
	}
	t.client = cl
	return nil
}

func (t *transactor) close() {
	if t.client != nil {
		t.client.Close()
		t.client = nil
	}
}

// commit writes b. The error says why when it was not committed.
func (t *transactor) commit(ctx context.Context, b *batch) (txnOutcome, error) {
	if err := t.connect(ctx); err != nil {
		return outcomeAborted, err
	}
	// A record that was sent and not answered can't be called back, whatever its
	// context says: when everything ends, so does the client.
	defer context.AfterFunc(ctx, t.client.Close)()
	began := time.Now()
	err := t.write(ctx, b)
	if err == nil {
		// Its context is never cancelled: an end that was sent can't be called back.
		err = t.client.EndTransaction(context.WithoutCancel(ctx), kgo.TryCommit)
		if err == nil {
			t.fenced, t.stuck = 0, false
			return outcomeCommitted, nil
		}
		err = fmt.Errorf("ending the transaction: %w", err)
		t.noteFence(err, began)
		return t.settle(ctx, b, err)
	}
	t.noteFence(err, began)
	if t.client == nil { // it could not even begin, so there is nothing to end
		return outcomeAborted, err
	}
	if aborted := t.client.EndTransaction(context.WithoutCancel(ctx), kgo.TryAbort); aborted != nil {
		// Nothing was committed, so there is nothing to ask; the next client aborts it.
		t.close()
	}
	return outcomeAborted, err
}

// noteFence counts fences of transactions that the coordinator had no reason to
// time out. A long outage or a stop of the process fences us too, and means
// nothing; again and again within seconds means that a twin runs with our id.
func (t *transactor) noteFence(err error, began time.Time) {
	if !kafka.IsFenced(err) || time.Since(began) >= transactionTimeout {
		return
	}
	t.fenced++
	if t.fenced >= 5 {
		t.d.fail(t.d.twin())
	}
}

// write produces the records of b and adds its offsets, all but the end.
func (t *transactor) write(ctx context.Context, b *batch) error {
	if err := t.client.BeginTransaction(); err != nil {
		t.close()
		return fmt.Errorf("beginning a transaction: %w", err)
	}
	id, epoch, err := t.client.ProducerID(ctx)
	if err != nil {
		return fmt.Errorf("asking for the producer id: %w", err)
	}
	t.producer = producer{id, epoch}
	if err := t.produce(ctx, b.assemble(t.d)); err != nil {
		return err
	}
	if err := t.addOffsets(ctx); err != nil {
		return fmt.Errorf("adding the group to the transaction: %w", err)
	}
	if err := t.commitOffsets(ctx, b); err != nil {
		return fmt.Errorf("committing offsets in the transaction: %w", err)
	}
	return t.sameProducer(ctx)
}

// producer is the id and epoch under which a transaction was begun.
type producer struct {
	id    int64
	epoch int16
}

var errProducerChanged = errors.New("the client has taken a new producer id within the transaction")

// sameProducer: whether the transaction is still the one that was begun.
//
//  1. Some records are acknowledged; then the coordinator times the transaction out.
//  2. The next record is refused, and where retention has passed our last one kgo
//     takes a new producer id by itself, and writes the record again.
//  3. Everything after that, and the end, belongs to another transaction: the first
//     records are gone, and the offsets would be committed all the same.
func (t *transactor) sameProducer(ctx context.Context) error {
	id, epoch, err := t.client.ProducerID(ctx)
	if err == nil && (producer{id, epoch}) != t.producer {
		err = errProducerChanged
	}
	return err
}

// roundBytes is how much one round writes to one partition at the most: below the
// topics' limit for a batch, whatever compression makes of it.
const roundBytes = 1 << 20

// produce writes the records in rounds, of which each holds at most one batch a
// partition: kgo would fill a batch beyond the topics' limit, since it counts
// before compression and single records may be large.
//
// A record that the broker refuses for its content ends the transaction, and has a
// replacement in the next one. Which record of a batch it was is not known: then
// each is written alone, all of them, so that the refused ones cost two failed
// transactions together and not one each.
func (t *transactor) produce(ctx context.Context, records []*outgoing) error {
	limit := roundBytes
	if t.wary {
		limit = 0
	}
	var refused error
	for len(records) > 0 {
		round, rest := split(records, limit)
		err := t.produceRound(ctx, round)
		if err != nil && !(t.wary && refusedForContent(err)) {
			t.wary = refusedForContent(err)
			return err
		}
		if err != nil {
			refused = err
		}
		records = rest
	}
	t.wary = false
	return refused
}

// split takes what fits into one round, and leaves the rest in order.
func split(records []*outgoing, limit int) (round, rest []*outgoing) {
	type partition struct {
		topic  string
		number int32
	}
	const closed = -1 // what comes behind must stay behind
	sizes := map[partition]int{}
	for _, r := range records {
		at := partition{r.rec.Topic, r.rec.Partition}
		size := record.Size(r.rec)
		if used := sizes[at]; used == closed || used > 0 && used+size > limit {
			sizes[at] = closed
			rest = append(rest, r)
			continue
		}
		sizes[at] += size
		round = append(round, r)
	}
	return round, rest
}

// produceRound waits for each record's own acknowledgement: a flush tells nothing
// of single records, and kgo would commit those that succeeded.
func (t *transactor) produceRound(ctx context.Context, records []*outgoing) error {
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		first error
	)
	wg.Add(len(records))
	for _, r := range records {
		r.rec.Timestamp = time.Time{} // stamped afresh when it is written again
		t.client.Produce(ctx, r.rec, func(_ *kgo.Record, err error) {
			defer wg.Done()
			if err == nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if first == nil || kafka.IsFenced(err) {
				first = fmt.Errorf("writing to %s/%d: %w", r.rec.Topic, r.rec.Partition, err)
			}
			if refusedForContent(err) && (t.wary || record.Size(r.rec) > roundBytes) {
				t.replace(r)
			}
		})
	}
	wg.Wait()
	return first
}

// replace takes what is to be written instead of a refused record. Where there is
// nothing left it is left out, for one that is written again and again stops all; but
// not a dead letter, with which an event would be lost: a topic that refuses even the
// least of it is not what Reenvio has made, and a person must mend it.
func (t *transactor) replace(o *outgoing) {
	attrs := []any{"topic", o.rec.Topic, "number", o.rec.Partition, "key", string(o.rec.Key), "bytes", record.Size(o.rec)}
	switch {
	case o.replace():
	case o.rec.Topic != t.d.topo.DLQ():
		o.leftOut = true
		t.d.log.Error("a record was refused and is left out", attrs...)
	case !t.stuck:
		t.stuck = true
		t.d.log.Error("a dead letter was refused in every form, nothing can be committed until its topic takes it: `reenvio topics plan` tells how the topic differs from what it should be", attrs...)
	}
}

func refusedForContent(err error) bool {
	return errors.Is(err, kerr.MessageTooLarge) || errors.Is(err, kerr.RecordListTooLarge) || errors.Is(err, kerr.InvalidRecord)
}

// settle finds out how a transaction ended whose end is unknown. It returns only
// when that is certain, or when no life in the batch is ours any more: then
// nobody here may act on it in either case.
func (t *transactor) settle(ctx context.Context, b *batch, cause error) (txnOutcome, error) {
	t.d.log.Warn("outcome of a transaction unknown, settling it", "cycle", b.id.String(), "error", cause)
	t.close()
	for backoff := 100 * time.Millisecond; ; backoff = min(2*backoff, time.Second) {
		in, err := t.committed(ctx, b)
		switch {
		case err == nil && in:
			t.d.log.Info("unknown transaction was committed", "cycle", b.id.String())
			return outcomeCommitted, nil
		case err == nil:
			return outcomeAborted, cause
		case ctx.Err() != nil:
			return outcomeAborted, err
		}
		t.d.cycle.setFailing(err) // readiness says it
		t.d.log.Warn("settling a transaction failed, trying again", "cycle", b.id.String(), "error", err)
		select {
		case <-time.After(backoff):
		case <-ctx.Done():
		}
	}
}

// committed: whether the group's offsets carry b's cycle.
func (t *transactor) committed(ctx context.Context, b *batch) (bool, error) {
	if err := t.connect(ctx); err != nil {
		return false, err
	}
	for _, p := range b.parts {
		if !t.d.ownership.alive(p.n) {
			continue
		}
		offsets, err := t.d.fetchOffsets(ctx, p.n.p, true)
		if err != nil {
			return false, err
		}
		// Read while it was ours all along, else another owner may have committed over it.
		if !t.d.ownership.alive(p.n) {
			continue
		}
		c, ok := offsets[p.n.out.carrier]
		return ok && c.cycle == b.id, nil
	}
	return false, nil
}
