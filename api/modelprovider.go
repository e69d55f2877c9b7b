package api

// ModelProviderContent is the body that makes or replaces a model provider.
type ModelProviderContent struct {
	BaseURL           string  `json:"base_url"                      doc:"Where its API is, http or https: /chat/completions is added to it."                                                                                                     maxLength:"2000"   minLength:"1"`
	APIKey            *string `json:"api_key,omitempty"             doc:"Sent as Authorization: Bearer. If it is absent the key from before stays, which is refused when base_url leads to another host; empty for none. It is stored encrypted and never shown." maxLength:"2000"`
	TimeoutSeconds    *int64  `json:"timeout_seconds,omitempty"     default:"120"                                                                                                                                                                doc:"How long one call may take." maximum:"3600" minimum:"1"`
	RequestsPerMinute *int64  `json:"requests_per_minute,omitempty" doc:"How many calls each server begins in a minute; 0, the default, for no limit. A call waits for its turn."                                                                maximum:"1000000"  minimum:"0"`
	MaxConcurrent     *int64  `json:"max_concurrent,omitempty"      doc:"How many calls of each server may be under way; 0, the default, for no limit. A call waits for its turn."                                                               maximum:"10000"    minimum:"0"`
}

// ModelProvider is where flows send chats to.
type ModelProvider struct {
	Name              string       `json:"name"                doc:"What model steps name it by."`
	BuiltIn           bool         `json:"built_in"            doc:"It is echo, which is part of the server, calls nobody and cannot be changed."`
	BaseURL           *string      `json:"base_url"            doc:"Null of the one that is built in."`
	APIKey            *ModelAPIKey `json:"api_key,omitempty"   doc:"What is shown of the key; absent if there is none."`
	TimeoutSeconds    *int64       `json:"timeout_seconds"     doc:"How long one call may take; null of the one that is built in."`
	RequestsPerMinute int64        `json:"requests_per_minute" doc:"0 for no limit."`
	MaxConcurrent     int64        `json:"max_concurrent"      doc:"0 for no limit."`
	CreatedAt         *string      `json:"created_at"          doc:"Null of the one that is built in."                                            format:"date-time"`
	UpdatedAt         *string      `json:"updated_at"          format:"date-time"`
}

// ModelAPIKey is what is shown of the key of a model provider.
type ModelAPIKey struct {
	Prefix   string `json:"prefix"    doc:"What it begins with; empty of a short one."`
	LastFour string `json:"last_four" doc:"What it ends with; empty of a short one."`
}
