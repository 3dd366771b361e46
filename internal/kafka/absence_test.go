package kafka

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// While a broker is dead, and Apache Kafka still names it as the coordinator, a heartbeat is repeated: its failure would be the end of a membership.
func TestAHeartbeatOutlivesItsCoordinator(t *testing.T) {
	for i := range 5 {
		synctest.Test(t, func(t *testing.T) {
			cluster, dial := startVirtual(t)
			group := fmt.Sprintf("group-%d", i)
			dead := cluster.ListenAddrs()[cluster.CoordinatorFor(group)]
			var back atomic.Bool
			cl := clientOf(t, Config{Brokers: cluster.ListenAddrs(), InstanceID: "test", Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
				if addr == dead && !back.Load() {
					return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
				}
				return dial(ctx, network, addr)
			}})
			began := time.Now()
			time.AfterFunc(9*time.Second, func() { back.Store(true) })
			req := kmsg.NewPtrHeartbeatRequest()
			req.Group, req.MemberID = group, "nobody"
			if _, err := req.RequestWith(t.Context(), cl); err != nil {
				t.Errorf("after %s: %v", time.Since(began), err)
			}
			if took := time.Since(began); took < 9*time.Second || took > 9*time.Second+2*maxBackoff {
				t.Errorf("it took %s", took)
			}
		})
	}
}

// A client that only asks, and has no topics, follows a coordinator that has moved for good.
func TestOffsetsAreFetchedFromTheNextCoordinator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster, dial := startVirtual(t)
		gone := cluster.CoordinatorFor("group")
		dead := cluster.ListenAddrs()[gone]
		var down atomic.Bool
		var conns []net.Conn
		cl := clientOf(t, Config{Brokers: cluster.ListenAddrs(), InstanceID: "test", Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if addr == dead && down.Load() {
				return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
			}
			conn, err := dial(ctx, network, addr)
			if addr == dead && err == nil {
				conns = append(conns, conn)
			}
			return conn, err
		}})
		fetch := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			req := kmsg.NewPtrOffsetFetchRequest()
			req.Groups = []kmsg.OffsetFetchRequestGroup{{Group: "group"}}
			_, err := req.RequestWith(ctx, cl)
			return err
		}
		if err := fetch(); err != nil {
			t.Fatal(err)
		}
		down.Store(true)
		for _, c := range conns {
			_ = c.Close()
		}
		time.AfterFunc(9*time.Second, func() {
			if err := cluster.RemoveNode(gone); err != nil {
				t.Error(err)
			}
			cluster.RehashCoordinators()
		})
		began := time.Now()
		for fetch() != nil {
			time.Sleep(time.Second)
		}
		if took := time.Since(began); took < 9*time.Second || took > 9*time.Second+metadataMaxAge+2*time.Second {
			t.Errorf("the next coordinator has answered after %s", took)
		}
	})
}
