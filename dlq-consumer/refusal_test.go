package dlqconsumer

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/reenvio/reenvio/schemas"
)

func TestEveryRefusalOfTheSchemaHasAnAdvice(t *testing.T) {
	data, err := schemas.FS.ReadFile("dlq-redrive.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Defs struct {
			Refusals struct {
				Items struct {
					Properties struct{ Refusal struct{ Enum []Refusal } }
				}
			}
		} `json:"$defs"`
	}
	if err := json.Unmarshal(data, &schema); err != nil {
		t.Fatal(err)
	}
	all := schema.Defs.Refusals.Items.Properties.Refusal.Enum
	if len(all) == 0 {
		t.Fatal("the schema names none")
	}
	forcible := 0
	for _, r := range all {
		if r.Advice() == "" {
			t.Errorf("%s has no advice", r)
		}
		if force := strings.Contains(r.Advice(), "--force"); force {
			forcible++
		}
	}
	if forcible != 3 {
		t.Errorf("the advice names --force %d times, 3 refusals are overridden by it", forcible)
	}
}
