"""Who led, who was in the ISR, and which broker was the controller: sampled, stored, and drawn."""
