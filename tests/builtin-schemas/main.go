// Builtin-schemas makes src/rules/schemas/kubernetes.txt, the schemas of the common Kubernetes kinds that the checker
// carries with it, from the OpenAPI v3 documents of a real API server:
//
//	for api in api/v1 apis/apps/v1 …; do kubectl get --raw /openapi/v3/$api > "$(basename $api)-$RANDOM.json"; done
//	go run . *.json > ../../src/rules/schemas/kubernetes.txt
//
// Take a server that was built with enums in its OpenAPI (every release is; the documents in the Kubernetes repository
// are not). The output has one definition a line, sorted, so that a new Kubernetes version is a readable diff:
//
//	kind NAME GROUP/VERSION/KIND namespaced|cluster
//	NAME {schema}
//
// Descriptions and what only old clients need are left out. A field that is in every object that the server gives, although
// nobody has to write it, is marked `x-always`.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
)

// withSchema are the groups whose namespaced kinds a rule is likely to make. Of all other kinds only the scope is kept.
var withSchema = []string{
	"", "apps", "autoscaling", "batch", "coordination.k8s.io", "discovery.k8s.io", "networking.k8s.io", "policy",
	"rbac.authorization.k8s.io",
}

// filledIn are fields that the API server gives a value when there is none, which its documents do not say.
var filledIn = map[string][]string{
	"core.v1.ServiceSpec":    {"internalTrafficPolicy", "sessionAffinity", "type"},
	"core.v1.ServicePort":    {"protocol", "targetPort"},
	"core.v1.PodSpec":        {"dnsPolicy", "restartPolicy", "schedulerName", "serviceAccountName"},
	"apps.v1.DeploymentSpec": {"progressDeadlineSeconds", "replicas", "revisionHistoryLimit", "strategy"},
	"apps.v1.ReplicaSetSpec": {"replicas"},
	"apps.v1.StatefulSetSpec": {
		"podManagementPolicy", "replicas", "revisionHistoryLimit", "updateStrategy",
	},
	"apps.v1.DaemonSetSpec": {"revisionHistoryLimit", "updateStrategy"},
	"batch.v1.CronJobSpec":  {"concurrencyPolicy", "failedJobsHistoryLimit", "successfulJobsHistoryLimit", "suspend"},
	"batch.v1.JobSpec":      {"backoffLimit", "completionMode", "parallelism", "suspend"},
}

type kind struct {
	Group   string `json:"group"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
}

type document struct {
	Paths      map[string]map[string]json.RawMessage `json:"paths"`
	Components struct {
		Schemas map[string]map[string]any `json:"schemas"`
	} `json:"components"`
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "builtin-schemas:", err)
		os.Exit(1)
	}
}

func run(files []string) error {
	if len(files) == 0 {
		return fmt.Errorf("no OpenAPI documents given; see the comment at the top of main.go")
	}
	schemas := map[string]map[string]any{}
	namespaced := map[kind]bool{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var doc document
		if err := json.Unmarshal(data, &doc); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		for name, schema := range doc.Components.Schemas {
			schemas[name] = schema
		}
		if err := scopes(doc, namespaced); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	out, err := lines(schemas, namespaced)
	if err != nil {
		return err
	}
	_, err = os.Stdout.WriteString(strings.Join(out, "\n") + "\n")
	return err
}

// scopes finds the kinds that can be created and read back by name, and whether that happens in a namespace.
func scopes(doc document, namespaced map[kind]bool) error {
	for path, operations := range doc.Paths {
		post, creates := operations["post"]
		if _, isCollection := operations["get"]; !creates || !isCollection || strings.Contains(path, "{name}") {
			continue
		}
		var operation struct {
			Kind kind `json:"x-kubernetes-group-version-kind"`
		}
		if err := json.Unmarshal(post, &operation); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		namespaced[operation.Kind] = strings.Contains(path, "{namespace}")
	}
	return nil
}

func lines(schemas map[string]map[string]any, namespaced map[kind]bool) ([]string, error) {
	var out []string
	wanted := map[string]bool{}
	for name, schema := range schemas {
		k, ok := kindOf(schema)
		inNamespace, exists := namespaced[k]
		if !ok || !exists {
			continue
		}
		scope := "cluster"
		if inNamespace {
			scope = "namespaced"
		}
		if inNamespace && slices.Contains(withSchema, k.Group) {
			want(name, schemas, wanted)
		}
		out = append(out, fmt.Sprintf("kind %s %s/%s/%s %s", short(name), k.Group, k.Version, k.Kind, scope))
	}
	for name := range wanted {
		line := bytes.Buffer{}
		encoder := json.NewEncoder(&line)
		encoder.SetEscapeHTML(false)
		definition := trim(schemas[name])
		for _, field := range filledIn[short(name)] {
			property, ok := definition["properties"].(map[string]any)[field].(map[string]any)
			if !ok {
				return nil, fmt.Errorf("%s has no field %s", name, field)
			}
			property["x-always"] = true
		}
		if err := encoder.Encode(definition); err != nil {
			return nil, err
		}
		out = append(out, short(name)+" "+strings.TrimSpace(line.String()))
	}
	slices.Sort(out)
	return out, nil
}

// kindOf is the kind that a definition is the schema of. Those of several kinds (DeleteOptions) are of none.
func kindOf(schema map[string]any) (kind, bool) {
	list, _ := schema["x-kubernetes-group-version-kind"].([]any)
	if len(list) != 1 {
		return kind{}, false
	}
	entry, _ := list[0].(map[string]any)
	group, _ := entry["group"].(string)
	version, _ := entry["version"].(string)
	name, _ := entry["kind"].(string)
	return kind{group, version, name}, true
}

// want marks a definition and all that it refers to.
func want(name string, schemas map[string]map[string]any, wanted map[string]bool) {
	if wanted[name] {
		return
	}
	wanted[name] = true
	for _, reference := range references(schemas[name]) {
		want(reference, schemas, wanted)
	}
}

func references(node any) []string {
	var found []string
	switch node := node.(type) {
	case map[string]any:
		for key, value := range node {
			if text, ok := value.(string); ok && key == "$ref" {
				found = append(found, strings.TrimPrefix(text, "#/components/schemas/"))
			}
			found = append(found, references(value)...)
		}
	case []any:
		for _, value := range node {
			found = append(found, references(value)...)
		}
	}
	return found
}

// kept are the words of a schema that the checker understands.
var kept = []string{
	"type", "format", "enum", "required", "x-kubernetes-list-type", "x-kubernetes-list-map-keys",
	"x-kubernetes-map-type", "x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields",
}

func trim(schema map[string]any) map[string]any {
	out := map[string]any{}
	for _, word := range kept {
		if value, ok := schema[word]; ok {
			out[word] = value
		}
	}
	if reference, ok := schema["$ref"].(string); ok {
		return map[string]any{"$ref": short(strings.TrimPrefix(reference, "#/components/schemas/"))}
	}
	// A reference with a description or a default beside it is written as an allOf of one.
	if all, ok := schema["allOf"].([]any); ok && len(all) == 1 {
		if only, ok := all[0].(map[string]any); ok {
			for word, value := range trim(only) {
				out[word] = value
			}
		}
	}
	// In these documents a default is the zero value of what is never left out when an object is written.
	if _, ok := schema["default"]; ok {
		out["x-always"] = true
	}
	if properties, ok := schema["properties"].(map[string]any); ok {
		trimmed := map[string]any{}
		for name, property := range properties {
			if property, ok := property.(map[string]any); ok {
				trimmed[name] = trim(property)
			}
		}
		out["properties"] = trimmed
	}
	for _, word := range []string{"items", "additionalProperties"} {
		if inner, ok := schema[word].(map[string]any); ok {
			trimmed := trim(inner)
			delete(trimmed, "x-always")
			out[word] = trimmed
		}
	}
	// Quantities and ports: «one of integer/number or string».
	if alternatives, ok := schema["oneOf"].([]any); ok {
		var types []any
		for _, alternative := range alternatives {
			if alternative, ok := alternative.(map[string]any); ok {
				types = append(types, alternative["type"])
			}
		}
		switch {
		case slices.Contains(types, any("integer")):
			out["x-kubernetes-int-or-string"] = true
			delete(out, "format")
		case slices.Contains(types, any("number")):
			out["format"] = "quantity"
		}
	}
	return out
}

// short drops the part of a definition's name that says nothing.
func short(name string) string {
	for _, prefix := range []string{"io.k8s.api.", "io.k8s.apimachinery.pkg.apis.", "io.k8s.apimachinery.pkg.", "io.k8s."} {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			return rest
		}
	}
	return name
}
