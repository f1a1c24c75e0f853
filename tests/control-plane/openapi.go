package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// generateOpenAPI makes Kubernetes before v1.24 compile. Its API server imports a package of generated OpenAPI definitions
// (server-side apply gets its merge rules from them), which the original Makefile writes before each build and which is
// therefore in no release of the module. The generator itself is a Go program among the module's dependencies, so it is
// run here, in the version that the module asks for.
//
// Go accepts additional files in a downloaded module neither in place nor as an overlay, hence the copy that the generated
// go.mod then points to.
func generateOpenAPI(ctx context.Context, module *buildModule, progress *progress) error {
	const pkg = "pkg/generated/openapi"
	const name = "zz_generated.openapi"
	copied := module.file("kubernetes")
	target := filepath.Join(copied, pkg, name+".go")

	if _, err := os.Stat(target); errors.Is(err, os.ErrNotExist) {
		progress.say("generating OpenAPI definitions")
		inputs, err := packagesWithOpenAPI(ctx, module)
		if err != nil {
			return err
		}
		output := module.file("openapi")
		_, err = module.goCommand(ctx, "run", "k8s.io/kube-openapi/cmd/openapi-gen",
			"--logtostderr",
			"--input-dirs="+strings.Join(inputs, ","),
			"--output-package="+module.path+"/"+pkg,
			"--output-file-base="+name,
			"--output-base="+output,
			"--go-header-file="+filepath.Join(module.source, "hack/boilerplate/boilerplate.generatego.txt"),
			// The generator's complaints about Kubernetes' own API conventions, which are not ours to mend.
			"--report-filename="+module.file("openapi-violations"))
		if err != nil {
			return fmt.Errorf("generate OpenAPI definitions: %w", err)
		}
		if err := os.RemoveAll(copied); err != nil {
			return err
		}
		if err := os.CopyFS(copied, os.DirFS(module.source)); err != nil {
			return err
		}
		// Last, because this file is what says that the copy is complete.
		generated := filepath.Join(output, filepath.FromSlash(module.path), pkg, name+".go")
		if err := os.Rename(generated, target); err != nil {
			return err
		}
	}
	return module.edit(ctx, "-replace="+module.path+"=./kubernetes")
}

// packagesWithOpenAPI are the packages whose types the API server describes: those marked so in their source, among all
// that it is compiled from.
func packagesWithOpenAPI(ctx context.Context, module *buildModule) ([]string, error) {
	listed, err := module.goCommand(ctx, "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}\t{{.Dir}}{{end}}", module.path+"/cmd/"+string(apiServer))
	if err != nil {
		return nil, err
	}
	var marked []string
	for line := range strings.Lines(string(listed)) {
		path, folder, _ := strings.Cut(strings.TrimSpace(line), "\t")
		found, err := anyGoFileContains(folder, "+k8s:openapi-gen=")
		if err != nil {
			return nil, err
		}
		if found {
			marked = append(marked, path)
		}
	}
	return marked, nil
}

func anyGoFileContains(folder, text string) (bool, error) {
	files, err := fs.Glob(os.DirFS(folder), "*.go")
	if err != nil {
		return false, err
	}
	for _, name := range files {
		content, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			return false, err
		}
		if bytes.Contains(content, []byte(text)) {
			return true, nil
		}
	}
	return false, nil
}
