// Command protoc-gen-openapi writes the OpenAPI 3.1 document of Drover's API from its .proto files; buf runs it (`make generate`).
//
// It is our own because no generator that is kept describes what is served here: the JSON of the connect protocol. Those of
// grpc-gateway describe its own mapping (Swagger 2.0, other errors and streams), or need annotations for each method.
package main

import (
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/types/pluginpb"
)

func main() {
	protogen.Options{}.Run(func(plugin *protogen.Plugin) error {
		plugin.SupportedFeatures = uint64(pluginpb.CodeGeneratorResponse_FEATURE_PROTO3_OPTIONAL)
		d := newDocument()
		for _, file := range plugin.Files {
			if !file.Generate {
				continue
			}
			for _, service := range file.Services {
				d.service(service)
			}
		}
		data, err := json.MarshalIndent(d.content(), "", "  ")
		if err != nil {
			return fmt.Errorf("write the document: %w", err)
		}
		_, err = plugin.NewGeneratedFile("openapi/openapi.json", "").Write(append(data, '\n'))
		return err
	})
}
