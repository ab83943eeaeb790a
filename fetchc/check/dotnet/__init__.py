"""What .NET has of its own: references, boxes, arrays of several dimensions."""
