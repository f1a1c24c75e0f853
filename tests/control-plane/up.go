package main

import (
	"context"
	"errors"
)

func runUp(ctx context.Context, args []string) error { return errors.New("not yet") }
