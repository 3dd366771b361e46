package crash_test

import (
	"testing"

	"github.com/reenvio/reenvio/e2e/procs"
)

func TestMain(m *testing.M) { procs.Main(m) }
