"""moe_ep: the expert computation of one rank when experts are spread wide, communication left out."""
