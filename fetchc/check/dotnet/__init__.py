"""What .NET has of its own: references, boxes."""
