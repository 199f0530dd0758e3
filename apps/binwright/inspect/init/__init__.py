"""`binwright init`: a settings file that is made from a look at Kafka."""
