package delivery

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"strconv"
	"testing"

	"github.com/reenvio/reenvio/internal/record"
)

// canned answers every request on a loopback port with the least work there is,
// so that a benchmark measures the sending side.
func canned(b *testing.B) (url string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				r := bufio.NewReader(c)
				for {
					length := 0
					for {
						line, err := r.ReadSlice('\n')
						if err != nil {
							return
						}
						if value, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
							length, _ = strconv.Atoi(string(bytes.TrimSpace(value)))
						}
						if len(line) == 2 {
							break
						}
					}
					r.Discard(length)
					io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
				}
			}()
		}
	}()
	return "http://" + l.Addr().String() + "/in"
}

var benchmarkBody = bytes.Repeat([]byte("x"), 1024)

func BenchmarkSend(b *testing.B) {
	sender, err := New(Options{Egress: Egress{Allow: []string{"127.0.0.0/8"}, AllowHTTP: true}, Version: "1.2.3", MaxInFlight: 256})
	if err != nil {
		b.Fatal(err)
	}
	url := canned(b)
	e := endpoint(b, func(e *record.Endpoint) { e.URL = url })
	a := Attempt{Delivery: event(func(d *record.Delivery) { d.Value = benchmarkBody }), Number: 1, Endpoint: e}
	b.ReportAllocs()
	b.SetParallelism(16)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if r := sender.Send(b.Context(), a); r.Class != ClassDelivered {
				b.Errorf("%+v", r)
				return
			}
		}
	})
}

// BenchmarkBarePost is what net/http costs without us, for comparison: the same
// body and as many headers, unsigned.
func BenchmarkBarePost(b *testing.B) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConns: 256, MaxIdleConnsPerHost: 256, DisableCompression: true}}
	url := canned(b)
	b.ReportAllocs()
	b.SetParallelism(16)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			request, _ := http.NewRequestWithContext(b.Context(), "POST", url, bytes.NewReader(benchmarkBody))
			for _, name := range []string{"Content-Type", "User-Agent", "X-A", "X-B", "X-C", "X-D", "X-E", "X-F"} {
				request.Header.Set(name, "application/json")
			}
			answer, err := client.Do(request)
			if err != nil {
				b.Error(err)
				return
			}
			io.Copy(io.Discard, answer.Body)
			answer.Body.Close()
		}
	})
}
