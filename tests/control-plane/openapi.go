package main

import (
	"context"
	"errors"
)

func generateOpenAPI(ctx context.Context, module *buildModule, progress *progress) error {
	return errors.New("not yet")
}
